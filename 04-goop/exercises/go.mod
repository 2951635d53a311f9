module example.com/workbook/04-goop/exercises

go 1.26.0

ignore ./work

require (
	example.com/workbook/04-goop v0.0.0
	example.com/workbook/shared v0.0.0
)

replace (
	example.com/workbook/04-goop => ..
	example.com/workbook/shared => ../../shared
)
