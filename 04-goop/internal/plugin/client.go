package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/workbook/04-goop/api/v1alpha1"
)

// requestTimeout bounds the requests that are made also after the program was told to end.
const requestTimeout = 30 * time.Second

var (
	scheme         = runtime.NewScheme()
	codecs         = serializer.NewCodecFactory(scheme)
	parameterCodec = runtime.NewParameterCodec(scheme)
)

func init() {
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
}

// api is the part of a cluster's API that is used, in one namespace.
type api struct {
	namespace string
	goops     *gentype.ClientWithList[*v1alpha1.Goop, *v1alpha1.GoopList]
	core      kubernetes.Interface
}

// connect makes the clients that the flags ask for. An empty namespace means that of the kubeconfig.
func connect(flags *genericclioptions.ConfigFlags, warnings io.Writer, everywhere bool) (*api, error) {
	namespace, _, err := flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	if everywhere {
		namespace = metav1.NamespaceAll
	}
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	// What bounds the requests is how many logs are read at once; the server has its own fairness.
	config.QPS = -1
	config.UserAgent = "kubectl-goop"
	config.WarningHandler = rest.NewWarningWriter(warnings, rest.WarningWriterOptions{Deduplicate: true})

	pods := rest.CopyConfig(config)
	pods.ContentType = runtime.ContentTypeProtobuf
	pods.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	core, err := kubernetes.NewForConfig(pods)
	if err != nil {
		return nil, err
	}
	config.GroupVersion = &v1alpha1.GroupVersion
	config.APIPath = "/apis"
	config.NegotiatedSerializer = codecs.WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	return &api{
		namespace: namespace,
		core:      core,
		goops: gentype.NewClientWithList("goops", client, parameterCodec, namespace,
			func() *v1alpha1.Goop { return &v1alpha1.Goop{} },
			func() *v1alpha1.GoopList { return &v1alpha1.GoopList{} }),
	}, nil
}

// lasting returns a context that a signal does not end: for requests that must not be left half done, and for those
// that come after the signal.
func lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
}

// cursor is how far a log has been read. A stream that broke off is opened again, and begins anew.
type cursor struct {
	instance string // of the container: each has its own log
	read     int64
	sum      maphash.Hash // of what was read
	before   bool         // something was read of an earlier one's
}

// any says whether anything was ever read.
func (c *cursor) any() bool { return c.before || c.read > 0 }

// readLog copies to out what is new in the log of a worker's command, and with follow goes on until the command has
// ended or the stream breaks off, with or without an error. Errors of out are outputErrors; if the context ended, the
// error of the stream is the cause of that. begunAnew means that the log no longer begins with what was read before:
// its node has put the older part of it away.
func (a *api) readLog(ctx context.Context, j job, at *cursor, out io.Writer, s *silence) (begunAnew bool, err error) {
	options := &corev1.PodLogOptions{Container: v1alpha1.WorkContainer, Follow: j.follow}
	s.begin()
	defer s.end()
	opened, err := a.core.CoreV1().Pods(a.namespace).GetLogs(j.pod, options).Stream(ctx)
	if err != nil {
		return false, cmp.Or(context.Cause(ctx), err)
	}
	defer opened.Close()
	stream := &awaited{stream: opened, silence: s}
	if at.read > 0 {
		var again maphash.Hash
		again.SetSeed(at.sum.Seed())
		n, err := io.CopyN(&again, stream, at.read)
		if err != nil && !errors.Is(err, io.EOF) {
			return false, cmp.Or(context.Cause(ctx), err)
		}
		if n != at.read || again.Sum64() != at.sum.Sum64() {
			at.read, at.sum, begunAnew = n, again, true
		}
	}
	buffer := make([]byte, 32<<10)
	for {
		n, err := stream.Read(buffer)
		at.read += int64(n)
		_, _ = at.sum.Write(buffer[:n])
		if _, failed := out.Write(buffer[:n]); failed != nil {
			return begunAnew, failed
		}
		switch {
		case errors.Is(err, io.EOF):
			return begunAnew, nil
		case err != nil:
			return begunAnew, cmp.Or(context.Cause(ctx), fmt.Errorf("reading the log: %w", err))
		}
	}
}
