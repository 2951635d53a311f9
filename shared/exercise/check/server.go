package check

// Server is how an API server is reached: what is in the file that ServerVariable names.
type Server struct {
	Host string `json:"host"`
	CA   []byte `json:"ca"`
	Cert []byte `json:"cert"`
	Key  []byte `json:"key"`
	// AuditLog is a file in which every request is noted, one JSON object a line.
	AuditLog string `json:"auditLog"`
	// Etcd is the URL of the API server's etcd, which asks for no certificate. It is empty if the server is that of a cluster.
	Etcd string `json:"etcd,omitempty"`
}
