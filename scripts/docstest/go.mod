module example.com/workbook/scripts/docstest

go 1.26.0

require (
	github.com/rogpeppe/go-internal v1.16.0
	github.com/yuin/goldmark v1.7.17
	golang.org/x/mod v0.37.0
	golang.org/x/tools v0.47.0
)

require golang.org/x/sys v0.49.0 // indirect
