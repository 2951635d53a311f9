package conversion

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	"example.com/workbook/02-lolcow/api/v1alpha1"
	"example.com/workbook/02-lolcow/api/v1beta1"
)

// maxBody bounds a request in bytes, which may be for a list: of thousands of Lolcows, and less than the memory of the operator.
const maxBody = 32 << 20

// SetupWebhookWithManager serves conversions at /convert of the manager's webhook server.
func SetupWebhookWithManager(mgr ctrl.Manager) error {
	h, err := newHandler(mgr.GetScheme())
	if err != nil {
		return err
	}
	mgr.GetWebhookServer().Register("/convert", h)
	return nil
}

// handler does what the handler of controller-runtime does, and says which object cannot be converted: one fails the whole
// request, which may be for a list, and the error of controller-runtime is about a field of any of them.
type handler struct {
	scheme    *runtime.Scheme
	decoder   *conversion.Decoder
	converter conversion.Converter
}

func newHandler(scheme *runtime.Scheme) (*handler, error) {
	converter, err := conversion.NewHubSpokeConverter(&v1beta1.Lolcow{},
		conversion.NewSpokeConverter(&v1alpha1.Lolcow{},
			func(_ context.Context, from *v1beta1.Lolcow, to *v1alpha1.Lolcow) error {
				FromHub(from, to)
				return nil
			},
			func(_ context.Context, from *v1alpha1.Lolcow, to *v1beta1.Lolcow) error { ToHub(from, to); return nil }))(scheme)
	if err != nil {
		return nil, err
	}
	return &handler{scheme, conversion.NewDecoder(scheme), converter}, nil
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	logger := ctrl.LoggerFrom(r.Context())
	var review apiextensionsv1.ConversionReview
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&review)
	if err == nil && review.Request == nil {
		err = errors.New("it has no request")
	}
	if err != nil {
		err = fmt.Errorf("reading a ConversionReview: %w", err)
		logger.Error(err, "Cannot convert")
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, object := range review.Request.Objects {
		converted, err := h.convert(r.Context(), object.Raw, review.Request.DesiredAPIVersion)
		if err != nil {
			logger.Error(err, "Cannot convert")
			review.Response.ConvertedObjects = nil
			review.Response.Result = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
			break
		}
		review.Response.ConvertedObjects = append(review.Response.ConvertedObjects, runtime.RawExtension{Object: converted})
	}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(review); err != nil {
		logger.Error(err, "Cannot respond to the API server")
	}
}

func (h *handler) convert(ctx context.Context, raw []byte, version string) (runtime.Object, error) {
	from, kind, err := h.decoder.Decode(raw)
	if err != nil {
		return nil, fmt.Errorf("decoding %s: %w", describe(raw), err)
	}
	want := schema.FromAPIVersionAndKind(version, kind.Kind)
	to, err := h.scheme.New(want)
	if err == nil {
		to.GetObjectKind().SetGroupVersionKind(want)
		err = h.converter.ConvertObject(ctx, from, to)
	}
	if err != nil {
		return nil, fmt.Errorf("converting %s to %s: %w", describe(raw), version, err)
	}
	return to, nil
}

// describe names an object that may be no Lolcow.
func describe(raw []byte) string {
	var object metav1.PartialObjectMetadata
	_ = json.Unmarshal(raw, &object) // the error of the decoder is the one to report
	return fmt.Sprintf("%s %s/%s in %s", object.Kind, object.Namespace, object.Name, object.APIVersion)
}
