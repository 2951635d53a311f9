package plugin

import (
	"io"

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

var (
	scheme         = runtime.NewScheme()
	codecs         = serializer.NewCodecFactory(scheme)
	parameterCodec = runtime.NewParameterCodec(scheme)
)

func init() {
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
}

// api has the clients of the APIs that are used, in one namespace.
type api struct {
	namespace string
	goops     *gentype.ClientWithList[*v1alpha1.Goop, *v1alpha1.GoopList]
	core      kubernetes.Interface
}

// connect creates the clients that the flags select. The namespace comes from the flags or the kubeconfig.
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
	// The number of logs that are read at the same time limits the requests, and the API server has priority and fairness.
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
	config.GroupVersion = &v1alpha1.SchemeGroupVersion
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
