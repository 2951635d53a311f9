package operator

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// tokenLife is long enough for a working day with `make run`: the token is not renewed.
const tokenLife = 12 * time.Hour

// Token asks for a token of a ServiceAccount, as the kubelet does for a pod.
func Token(ctx context.Context, cfg *rest.Config, namespace, serviceAccount string) (string, error) {
	clients, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return "", fmt.Errorf("making a client: %w", err)
	}
	seconds := int64(tokenLife / time.Second)
	response, err := clients.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, serviceAccount,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("getting a token of ServiceAccount %s/%s: %w", namespace, serviceAccount, err)
	}
	return response.Status.Token, nil
}

// credentialOf returns the id of a ServiceAccount's token, as audit.Credential has it.
func credentialOf(token string) (string, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", errors.New("reading a token's id: it is not a JSON web token")
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", fmt.Errorf("reading a token's id: %w", err)
	}
	var claims struct {
		ID string `json:"jti"`
	}
	if err := json.Unmarshal(text, &claims); err != nil || claims.ID == "" {
		return "", fmt.Errorf("reading a token's id: it has none (%w)", err)
	}
	return "JTI=" + claims.ID, nil
}

// getMetrics asks for https://127.0.0.1:port/metrics.
func getMetrics(ctx context.Context, port int, token string) (int, string, error) {
	url := fmt.Sprintf("https://127.0.0.1:%d/metrics", port)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, "", fmt.Errorf("asking for metrics: %w", err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	// The manager signs its own certificate when it is given none; what is tested is who may read.
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return 0, "", fmt.Errorf("asking for metrics: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, "", fmt.Errorf("reading metrics: %w", err)
	}
	return response.StatusCode, string(body), nil
}

// freePorts finds ports of this machine that no process listens on. Another process may take one before
// the operator does; then the operator says so and ends.
func freePorts(ctx context.Context, n int) ([]int, error) {
	var ports []int
	for range n {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("finding a free port: %w", err)
		}
		defer listener.Close()
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
