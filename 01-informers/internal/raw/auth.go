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
	// verdictTTL is how long the API server's answer about a caller counts: a scrape every few seconds must
	// not be two requests each, and a right that is taken away must not live on for long.
	verdictTTL = 10 * time.Second

	// verdictCount is the most callers to remember.
	verdictCount = 256

	// reviewTimeout is the longest that the questions about one caller may take.
	reviewTimeout = 10 * time.Second
)

// gate lets only those callers through that the API server knows by their bearer token (TokenReview) and
// allows the request (SubjectAccessReview on the path).
type gate struct {
	client   kubernetes.Interface
	verdicts *cache.LRUExpireCache
}

func newGate(client kubernetes.Interface, clock clock.PassiveClock) *gate {
	return &gate{client: client, verdicts: cache.NewLRUExpireCacheWithClock(verdictCount, clock)}
}

// question is what a verdict is about. Not the token itself is kept, but what it cannot be found from.
type question struct {
	token        [sha256.Size]byte
	method, path string
}

// guard answers 401 to a caller whom the API server does not know, 403 to one without the right, and 500 if
// it cannot be asked.
func (g *gate) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		code, err := g.verdict(request)
		if err != nil {
			klog.FromContext(request.Context()).Error(err, "A caller of the metrics could not be checked")
		}
		if code != http.StatusOK {
			http.Error(w, http.StatusText(code), code)
			return
		}
		next.ServeHTTP(w, request)
	})
}

func (g *gate) verdict(request *http.Request) (int, error) {
	scheme, token, _ := strings.Cut(request.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return http.StatusUnauthorized, nil
	}
	asked := question{sha256.Sum256([]byte(token)), request.Method, request.URL.Path}
	if known, ok := g.verdicts.Get(asked); ok {
		return known.(int), nil
	}
	ctx, cancel := context.WithTimeout(request.Context(), reviewTimeout)
	defer cancel()
	code, err := g.ask(ctx, token, request)
	if err != nil {
		return http.StatusInternalServerError, err
	}
	g.verdicts.Add(asked, code, verdictTTL)
	return code, nil
}

// ask asks the API server: who is it, and may they?
func (g *gate) ask(ctx context.Context, token string, request *http.Request) (int, error) {
	review, err := g.client.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
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
	access, err := g.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
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
