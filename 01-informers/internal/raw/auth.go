package raw

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// decisionTTL is how long the API server's decision about a caller is cached: a scrape every few seconds must not be two
	// requests each, and a permission that is removed must not be effective for long.
	decisionTTL = 10 * time.Second
	// decisionCount is the greatest number of decisions in the cache.
	decisionCount = 256
	// reviewTimeout bounds the requests to the API server about one caller.
	reviewTimeout = 10 * time.Second
)

// authFilter authenticates the callers of an HTTP server by their bearer tokens (TokenReview), and authorizes each request
// (SubjectAccessReview of the path).
type authFilter struct {
	client    kubernetes.Interface
	decisions *cache.LRUExpireCache
}

func newAuthFilter(client kubernetes.Interface, clock clock.PassiveClock) *authFilter {
	return &authFilter{client: client, decisions: cache.NewLRUExpireCacheWithClock(decisionCount, clock)}
}

// decisionKey is what a decision is about. It has a hash, and not the token.
type decisionKey struct {
	token        [sha256.Size]byte
	method, path string
}

// wrap returns a handler that responds with 401 to an unknown caller, with 403 to one without the permission, and with 500 if
// the API server cannot be asked. It calls next for all others.
func (f *authFilter) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		code, err := f.decide(request)
		if err != nil {
			klog.FromContext(request.Context()).Error(err, "Checking a caller of the metrics failed")
		}
		if code != http.StatusOK {
			http.Error(w, http.StatusText(code), code)
			return
		}
		next.ServeHTTP(w, request)
	})
}

func (f *authFilter) decide(request *http.Request) (int, error) {
	scheme, token, _ := strings.Cut(request.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return http.StatusUnauthorized, nil
	}
	key := decisionKey{sha256.Sum256([]byte(token)), request.Method, request.URL.Path}
	if cached, ok := f.decisions.Get(key); ok {
		return cached.(int), nil
	}
	ctx, cancel := context.WithTimeout(request.Context(), reviewTimeout)
	defer cancel()
	code, err := f.review(ctx, token, request)
	if err != nil {
		return http.StatusInternalServerError, err
	}
	f.decisions.Add(key, code, decisionTTL)
	return code, nil
}

// review asks the API server which user a token is of, and whether that user has the permission.
func (f *authFilter) review(ctx context.Context, token string, request *http.Request) (int, error) {
	review, err := f.client.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token},
	}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("reviewing a token: %w", err)
	}
	if !review.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user := review.Status.User
	extra := map[string]authorizationv1.ExtraValue{}
	for key, value := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(value)
	}
	access, err := f.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{
				Path: request.URL.Path, Verb: strings.ToLower(request.Method),
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("reviewing the access of %s: %w", user.Username, err)
	}
	if !access.Status.Allowed {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}
