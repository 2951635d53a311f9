package kube

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Response is one for Wire.Before that has the code 200 and this body, which is JSON if the caller sets no other Content-Type. It is
// closed with the response if it can be.
func Response(r *http.Request, body io.Reader) *http.Response {
	closer, ok := body.(io.ReadCloser)
	if !ok {
		closer = io.NopCloser(body)
	}
	return &http.Response{
		Status: status(http.StatusOK), StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: -1, Body: closer, Request: r,
	}
}

// Failure is the response of an API server that rejects a request.
func Failure(r *http.Request, err *apierrors.StatusError) *http.Response {
	response := Response(r, bytes.NewReader(encode(err)))
	response.StatusCode = int(err.ErrStatus.Code)
	response.Status = status(response.StatusCode)
	return response
}

func status(code int) string { return fmt.Sprintf("%d %s", code, http.StatusText(code)) }

// encode returns an error as an API server sends it.
func encode(err *apierrors.StatusError) []byte {
	sent := err.Status()
	sent.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	content, failed := json.Marshal(sent)
	if failed != nil {
		panic(failed) // it has only texts and numbers
	}
	return content
}
