package faults

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

// mediaTypes are all those that an API server may answer in. client-go asks for protobuf where the kinds
// are built in, and for JSON, or for CBOR where its feature ClientsAllowCBOR is on, where they are not.
var mediaTypes = serializer.NewCodecFactory(scheme.Scheme, serializer.WithSerializer(cbor.NewSerializerInfo)).SupportedMediaTypes()

// mediaType finds the serializer of a Content-Type such as
// "application/vnd.kubernetes.protobuf;stream=watch".
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
		return runtime.SerializerInfo{}, fmt.Errorf("there is no watch in %q", contentType)
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

// errorEvent returns the frame of an event of type ERROR, as the API server would send it.
func errorEvent(info runtime.SerializerInfo, status *metav1.Status) ([]byte, error) {
	object, err := runtime.Encode(info.Serializer, status)
	if err != nil {
		return nil, fmt.Errorf("encoding the Status: %w", err)
	}
	event := &metav1.WatchEvent{Type: string(watch.Error), Object: runtime.RawExtension{Raw: object}}
	body, err := runtime.Encode(info.StreamSerializer.Serializer, event)
	if err != nil {
		return nil, fmt.Errorf("encoding the event: %w", err)
	}
	return body, nil
}

// framed is the frame as it goes over the wire.
func framed(info runtime.SerializerInfo, frame []byte) ([]byte, error) {
	var wire bytes.Buffer
	_, err := info.StreamSerializer.NewFrameWriter(&wire).Write(frame)
	return wire.Bytes(), err
}

// readFrame reads the next whole frame, however long it is.
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
