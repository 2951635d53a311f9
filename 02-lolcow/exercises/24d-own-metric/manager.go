package ownmetric

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"example.com/workbook/02-lolcow/exercises/internal/lab"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

// running is the reader's manager, and who reads its metrics.
type running struct {
	address string
	// scraper and outsider are tokens.
	scraper, outsider string
	stop              func()
	client            *http.Client
}

// start starts the manager, and waits until it responds.
func start(b *check.B, work check.Work[Entry]) *running {
	lab.Install(b, work.Dir)
	r := &running{address: freeAddress(b), client: &http.Client{
		Timeout:   patience,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
	}}
	r.accounts(b)
	ctrl.SetLogger(logr.Discard())
	mgr, err := work.Entry(kube.ReaderConfig(b), ctrl.Options{
		Scheme:  lab.Scheme(),
		Metrics: server.Options{BindAddress: r.address},
		Logger:  logr.Discard(),
		// How long it takes to stop is not what is checked.
		GracefulShutdownTimeout: new(time.Duration(-1)),
	})
	if err != nil {
		b.Fatalf("NewManager returned an error: %v", err)
	}
	// It runs longer than this behaviour.
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// If it does not start, no metrics are served.
		_ = mgr.Start(ctx)
	}()
	r.stop = func() {
		cancel()
		<-ended
	}
	b.Eventually(patience, func() string {
		_, _, err := r.read()
		if err != nil {
			return "the metrics are not served at the address in options: " + reason(err)
		}
		return ""
	})
	return r
}

// freeAddress returns an address of this machine at which no program listens.
func freeAddress(b *check.B) string {
	var config net.ListenConfig
	listener, err := config.Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatalf("looking for a free port: %v", err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// accounts creates two ServiceAccounts, of which one may read metrics.
func (r *running) accounts(b *check.B) {
	client, namespace := kube.Client(b), kube.Namespace(b)
	r.scraper, r.outsider = token(b, client, namespace, "scraper"), token(b, client, namespace, "outsider")
	_, err := client.RbacV1().ClusterRoles().Create(b.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "metrics-reader"},
		Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		b.Fatalf("creating a ClusterRole: %v", err)
	}
	_, err = client.RbacV1().ClusterRoleBindings().Create(b.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "metrics-reader"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "scraper"}},
	}, metav1.CreateOptions{})
	if err != nil {
		b.Fatalf("creating a ClusterRoleBinding: %v", err)
	}
	// A manager keeps a 403 for half a minute: none is to come from an API server that does not know the binding yet.
	b.Eventually(patience, func() string {
		review, err := client.AuthorizationV1().SubjectAccessReviews().Create(b.Context(), &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User:                  "system:serviceaccount:" + namespace + ":scraper",
				NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"},
			},
		}, metav1.CreateOptions{})
		if err != nil || !review.Status.Allowed {
			return "the API server does not use a new binding"
		}
		return ""
	})
}

func token(b *check.B, client kubernetes.Interface, namespace, name string) string {
	accounts := client.CoreV1().ServiceAccounts(namespace)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := accounts.Create(b.Context(), account, metav1.CreateOptions{}); err != nil {
		b.Fatalf("creating a ServiceAccount: %v", err)
	}
	request, err := accounts.CreateToken(b.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		b.Fatalf("requesting a token: %v", err)
	}
	return request.Status.Token
}

// read reads the metrics as the scraper does, and without TLS if they are served so: that is another behaviour's.
func (r *running) read() (int, string, error) {
	status, text, err := r.get("https", r.scraper)
	if errors.Is(err, http.ErrSchemeMismatch) {
		return r.get("http", "")
	}
	return status, text, err
}

func (r *running) get(scheme, token string) (int, string, error) {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, scheme+"://"+r.address+"/metrics", http.NoBody)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := r.client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// reason is an error without the address.
func reason(err error) string {
	for cause := errors.Unwrap(err); cause != nil; cause = errors.Unwrap(err) {
		err = cause
	}
	return err.Error()
}
