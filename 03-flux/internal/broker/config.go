package broker

import (
	_ "embed"
	"fmt"
)

//go:embed broker.toml.tmpl
var configText string

var configTemplate = parse(ConfigFile, configText)

// Config returns broker.toml, which is the same for every rank. Its keys are those that flux-core reads in
// src/common/libfluxutil/conf_bootstrap.c, src/modules/overlay (tbon), src/modules/job-exec (exec) and
// src/modules/resource. Unknown keys in bootstrap and resource are errors. The log level is not a key: it is an
// attribute, so the entrypoint sets it as an option.
func (c Cluster) Config() string {
	return fill(configTemplate, struct {
		Cluster
		Dir, CertificateFile, Hosts, CoreIDs string
	}{
		Cluster:         c,
		Dir:             Dir,
		CertificateFile: CertificateFile,
		Hosts:           c.Name + "-" + ids(c.Size, "[0-%d]"),
		CoreIDs:         ids(c.Cores, "0-%d"),
	})
}

// ids formats the numbers from 0 to count-1 as in Flux RFC 22 and 29: as a range, or as the only number.
func ids(count int32, rangeFormat string) string {
	if count <= 1 {
		return "0"
	}
	return fmt.Sprintf(rangeFormat, count-1)
}
