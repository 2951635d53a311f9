// Package broker creates the files that a Flux broker needs to start in a pod and to connect to the others: a
// certificate, a configuration, an entrypoint script, and a script that runs the command. It uses no Kubernetes client:
// everything here is a pure function of its arguments.
package broker

import (
	"crypto/sha256"
	"encoding/hex"
)

// The directories of the container.
const (
	// Dir is an emptyDir, for everything that the broker writes.
	Dir = "/flux"

	// ConfigDir is where the ConfigMap is mounted.
	ConfigDir = "/flux-config"

	// SecretDir is where the Secret is mounted.
	SecretDir = "/flux-secret"
)

// The files. Those without a directory are keys of the ConfigMap or of the Secret.
const (
	// ConfigFile is the key of the result of Cluster.Config.
	ConfigFile = "broker.toml"

	// EntrypointFile is the key of the result of Cluster.Entrypoint.
	EntrypointFile = "entrypoint.sh"

	// CommandFile is the key of the result of Cluster.Command.
	CommandFile = "command.sh"

	// CertificateFile is the key of the result of NewCertificate.
	CertificateFile = "curve.cert"

	// ReadyFile exists when the pod is ready. On rank 0 that is when the quorum is reached and the command starts. On
	// the other ranks it is when the broker has joined.
	ReadyFile = Dir + "/ready"
)

// Cluster is the input for the files of the brokers.
type Cluster struct {
	// Name is the name of the Job: rank 3 has the hostname NAME-3.
	Name string
	// Service is the name of the headless Service, which gives the hosts their DNS names.
	Service string
	// Namespace is the namespace of both.
	Namespace string
	// Size is the number of brokers.
	Size int32
	// MinSize is the number of brokers that make the quorum. Submit runs the command on that many ranks.
	MinSize int32
	// Tasks is the number of tasks that run the command in parallel, in mode Submit.
	Tasks int32
	// Cores is how many cores the broker gives out on each rank.
	Cores int32
	// Port is the port on which rank 0 listens.
	Port int32
	// LogLevel is the highest level that the brokers write to standard error, as a syslog number.
	LogLevel int32
	// ConnectTimeout is how long a rank tries to connect to rank 0 before it tries again: 5s.
	ConnectTimeout string
	// Launcher runs the command once, on rank 0, instead of as tasks.
	Launcher bool
	// Argv is the command: the program and its arguments.
	Argv []string
}

// Files returns the files that all brokers of c read, by their keys in the ConfigMap.
func (c Cluster) Files() map[string]string {
	return map[string]string{ConfigFile: c.Config(), EntrypointFile: c.Entrypoint(), CommandFile: c.Command()}
}

// Hash is the SHA-256, in hexadecimal, of the files of c.
func (c Cluster) Hash() string { return HashOf(c.Files()) }

// HashOf is the SHA-256, in hexadecimal, of files that any version of Cluster.Files returned; "" if there are other
// files.
func HashOf(files map[string]string) string {
	if len(files) != 3 {
		return ""
	}
	sum := sha256.Sum256([]byte(files[ConfigFile] + "\x00" + files[EntrypointFile] + "\x00" + files[CommandFile]))
	return hex.EncodeToString(sum[:])
}
