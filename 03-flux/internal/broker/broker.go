// Package broker knows what a Flux broker has to be given so that it starts in a pod and finds the others: a
// certificate, a configuration, a script that starts it, and one that is the command. It knows no Kubernetes
// client: everything here is a pure function of its arguments.
package broker

import (
	"crypto/sha256"
	"encoding/hex"
)

// The folders of the container.
const (
	// Dir is an emptyDir, for everything that the broker writes.
	Dir = "/flux"

	// ConfigDir is where the ConfigMap is mounted.
	ConfigDir = "/flux-config"

	// SecretDir is where the Secret is mounted.
	SecretDir = "/flux-secret"
)

// The files. Those without a folder are keys: of the ConfigMap, and of the Secret.
const (
	// ConfigFile is the key of Cluster.Config.
	ConfigFile = "broker.toml"

	// EntrypointFile is the key of Cluster.Entrypoint.
	EntrypointFile = "entrypoint.sh"

	// CommandFile is the key of Cluster.Command.
	CommandFile = "command.sh"

	// CertificateFile is the key of NewCertificate.
	CertificateFile = "curve.cert"

	// ReadyFile is there when the pod is ready: that of rank 0 when the quorum is reached and the command begins,
	// another when its broker has joined.
	ReadyFile = Dir + "/ready"
)

// Cluster is what the files of the brokers depend on.
type Cluster struct {
	// Name is that of the Job: rank 3 is on the host NAME-3.
	Name string
	// Service is the name of the headless Service in which the hosts are found.
	Service string
	// Namespace is that of both.
	Namespace string
	// Size is the number of brokers.
	Size int32
	// MinSize is the number of brokers that make the quorum. Submit runs the command on that many ranks.
	MinSize int32
	// Tasks is how often Submit runs the command side by side.
	Tasks int32
	// Cores is how many cores the broker gives out on each rank.
	Cores int32
	// Port is the one at which rank 0 listens.
	Port int32
	// LogLevel is what the brokers write to their standard error, by the numbers of syslog.
	LogLevel int32
	// ConnectTimeout is how long a rank tries to connect to rank 0 before it tries anew: 5s.
	ConnectTimeout string
	// Launcher runs the command once, on rank 0, instead of as tasks.
	Launcher bool
	// Argv is the command: the program and its arguments.
	Argv []string
}

// Files are those that all brokers of c read, by the keys that they have in the ConfigMap.
func (c Cluster) Files() map[string]string {
	return map[string]string{ConfigFile: c.Config(), EntrypointFile: c.Entrypoint(), CommandFile: c.Command()}
}

// Hash is the SHA-256, in hexadecimal, of the files of c.
func (c Cluster) Hash() string {
	sum := sha256.Sum256([]byte(c.Config() + "\x00" + c.Entrypoint() + "\x00" + c.Command()))
	return hex.EncodeToString(sum[:])
}
