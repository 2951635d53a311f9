package broker

import (
	_ "embed"
	"fmt"
)

//go:embed broker.toml.tmpl
var configText string

var configTemplate = parse(ConfigFile, configText)

// Config returns broker.toml, which is the same for every rank. The keys are those that flux-core reads in
// src/common/libfluxutil/conf_bootstrap.c, src/modules/overlay (tbon), src/modules/job-exec (exec) and
// src/modules/resource; in bootstrap and resource, one that it does not know is an error. The log level is not among
// them: it is an attribute, and so an option in the entrypoint.
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

// ids writes the numbers from 0 to count-1 as Flux RFC 22 and 29 have them: a range, or the one number.
func ids(count int32, rangeFormat string) string {
	if count <= 1 {
		return "0"
	}
	return fmt.Sprintf(rangeFormat, count-1)
}
