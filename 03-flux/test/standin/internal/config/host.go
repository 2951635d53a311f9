package config

import (
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
)

// label is one part of a hostname.
var label = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$`)

// newHost expands the addresses of a host: %h is its name, %p the port, %% a per cent sign.
func newHost(name, bind, connect string, port int) (Host, error) {
	if len(name) > 253 {
		return Host{}, fmt.Errorf("%s domain must be 1-253 characters", name)
	}
	for part := range strings.SplitSeq(name, ".") {
		if !label.MatchString(part) {
			return Host{}, fmt.Errorf("%s domain label %q: letters, digits and - inside, 1-63 characters", name, part)
		}
	}
	fill := strings.NewReplacer("%h", name, "%p", strconv.Itoa(port), "%%", "%")
	host := Host{Name: name, Bind: fill.Replace(bind), Connect: fill.Replace(connect)}
	for key, uri := range map[string]string{"bind": host.Bind, "connect": host.Connect} {
		if uri == "" {
			continue
		}
		if _, err := Address(uri); err != nil {
			return Host{}, fmt.Errorf("%s key %w", key, err)
		}
	}
	return host, nil
}

// Address returns the address of a URI such as tcp://*:8050 in the format of the net package.
func Address(uri string) (string, error) {
	address, isTCP := strings.CutPrefix(uri, "tcp://")
	if !isTCP {
		return "", fmt.Errorf("%s URI scheme must be tcp", uri)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("%s is no address: %w", uri, err)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("%s has no port: %w", uri, err)
	}
	if host == "*" {
		host = ""
	}
	return net.JoinHostPort(host, port), nil
}
