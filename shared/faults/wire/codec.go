package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
)

const jsonType = runtime.ContentTypeJSON

// mediaTypes are all in which an API server may send a watch. client-go asks for protobuf for built-in kinds, and for
// JSON, or with its feature gate ClientsAllowCBOR for CBOR, for custom resources.
var mediaTypes = serializer.NewCodecFactory(scheme.Scheme, serializer.WithSerializer(cbor.NewSerializerInfo)).SupportedMediaTypes()

// mediaType returns the serializer of a Content-Type such as "application/vnd.kubernetes.protobuf;stream=watch".
func mediaType(contentType string) (runtime.SerializerInfo, error) {
	name, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return runtime.SerializerInfo{}, fmt.Errorf("reading the Content-Type %q: %w", contentType, err)
	}
	if name == runtime.ContentTypeCBORSequence {
		name = runtime.ContentTypeCBOR
	}
	info, ok := runtime.SerializerInfoForMediaType(mediaTypes, name)
	if !ok || info.StreamSerializer == nil {
		return runtime.SerializerInfo{}, fmt.Errorf("no watch can be sent as %q", contentType)
	}
	return info, nil
}

func encode(contentType string, status *metav1.Status) ([]byte, error) {
	info, err := mediaType(contentType)
	if err != nil {
		return nil, err
	}
	return runtime.Encode(info.Serializer, status)
}

// encodeEvent returns an event of a watch without its framing.
func encodeEvent(info runtime.SerializerInfo, eventType watch.EventType, object runtime.Object) ([]byte, error) {
	raw, err := runtime.Encode(info.Serializer, object)
	if err != nil {
		return nil, fmt.Errorf("encoding the object of an event: %w", err)
	}
	event := &metav1.WatchEvent{Type: string(eventType), Object: runtime.RawExtension{Raw: raw}}
	body, err := runtime.Encode(info.StreamSerializer.Serializer, event)
	if err != nil {
		return nil, fmt.Errorf("encoding an event: %w", err)
	}
	return body, nil
}

// framed returns an event as it is sent.
func framed(info runtime.SerializerInfo, event []byte) ([]byte, error) {
	var sent bytes.Buffer
	_, err := info.StreamSerializer.NewFrameWriter(&sent).Write(event)
	return sent.Bytes(), err
}

// readFrame reads the next event, however long it is.
func readFrame(reader io.Reader) ([]byte, error) {
	frame := make([]byte, 0, 4096)
	for {
		n, err := reader.Read(frame[len(frame):cap(frame)])
		frame = frame[:len(frame)+n]
		if !errors.Is(err, io.ErrShortBuffer) {
			return frame, err
		}
		frame = append(frame, make([]byte, cap(frame))...)[:len(frame)]
	}
}
