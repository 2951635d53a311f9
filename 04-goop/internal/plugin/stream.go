package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/workbook/04-goop/api/v1alpha1"
)

var errEmpty = errors.New("its log is empty, and its output was not")

// readLog copies new output in the log of a worker's command to out. With follow it reads until the stream ends, which
// proves nothing: if the API server loses the connection to the kubelet, it ends the stream as if it were complete.
// Without follow, it reads again while the log lacks output that the record has, until there is nothing new. stdout and
// stderr may be interleaved differently in log and record.
func (a *api) readLog(ctx context.Context, j job, at *cursor, out io.Writer, s *silence) (rotated bool, err error) {
	for {
		before := at.read
		lost, err := a.readStream(ctx, j, at, out, s)
		rotated = rotated || lost
		switch {
		case err != nil || j.follow || !at.lacks(j.record):
			return rotated, err
		case !at.any():
			return rotated, errEmpty
		case at.read == before:
			return rotated, nil
		}
	}
}

// readStream reads one stream of a log. Errors of out are outputErrors. If the context ended, the error is its cause.
// lost means that the log begins after what was read before, because the kubelet has rotated the older part away.
func (a *api) readStream(ctx context.Context, j job, at *cursor, out io.Writer, s *silence) (lost bool, err error) {
	options := &corev1.PodLogOptions{Container: v1alpha1.WorkContainer, Follow: j.follow, Previous: j.previous, Timestamps: true}
	s.begin()
	defer s.end()
	opened, err := a.core.CoreV1().Pods(a.namespace).GetLogs(j.pod, options).Stream(ctx)
	if err != nil {
		if status := apierrors.APIStatus(nil); !errors.As(err, &status) {
			err = connectionError{err}
		}
		return false, cmp.Or(context.Cause(ctx), err)
	}
	defer opened.Close()
	stream := &awaited{stream: opened, silence: s}
	lines := &stamped{cursor: at, skip: at.read}
	buffer := make([]byte, 32<<10)
	for {
		n, err := stream.Read(buffer)
		fresh := lines.fresh(buffer[:n])
		at.keep(fresh)
		if _, failed := out.Write(fresh); failed != nil {
			return lines.lost, failed
		}
		switch {
		case errors.Is(err, io.EOF):
			return lines.lost, lines.words()
		case err != nil:
			return lines.lost, cmp.Or(context.Cause(ctx), error(connectionError{fmt.Errorf("reading the log: %w", err)}))
		}
	}
}
