package broker

import _ "embed"

//go:embed entrypoint.sh.tmpl
var entrypointText string

var entrypointTemplate = parse(EntrypointFile, entrypointText)

// paths are the paths that the entrypoint uses.
type paths struct {
	Dir, ConfigDir, SecretDir, ReadyFile string
}

// Entrypoint returns the POSIX sh script that starts the broker of a pod of any rank. These files of flux-core explain
// what it does:
//
//   - src/modules/overlay/overlay.c, overlay_cert_load: the mode of the certificate;
//   - src/broker/rundir.c: the owner of rundir and statedir;
//   - src/broker/attr.c: which attributes there are; another is an error;
//   - src/broker/state_machine.c: rc1 runs after a broker has joined; state_machine_kill ignores a TERM while the
//     built-in modules are loaded, and leaves the exit code at 0 after one that comes before the command;
//   - src/broker/runat.c: an initial program of several words is executed without a shell;
//   - src/broker/log.c: what a broker other than rank 0 logs appears at rank 0, by log-forward-level.
func (c Cluster) Entrypoint() string {
	return c.entrypoint(paths{Dir: Dir, ConfigDir: ConfigDir, SecretDir: SecretDir, ReadyFile: ReadyFile})
}

func (c Cluster) entrypoint(p paths) string {
	return fill(entrypointTemplate, struct {
		Cluster
		paths
		CertificateFile, ConfigFile, CommandFile string
	}{c, p, CertificateFile, ConfigFile, CommandFile})
}
