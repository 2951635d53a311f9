package glass

import (
	"fmt"
	"net/http"

	"sigs.k8s.io/yaml"
)

// object sends one object of the store as YAML. Confidential fields are not in the store: see strip.
func (s *Server) object(w http.ResponseWriter, r *http.Request) {
	key := r.URL.Query().Get("key")
	if key == "" {
		http.Error(w, "the key is missing: /object?key=NAMESPACE/NAME", http.StatusBadRequest)
		return
	}
	found, known, err := s.pipeline.informer.Store().GetByKey(key)
	if err != nil || !known {
		http.Error(w, fmt.Sprintf("the store has no %q", key), http.StatusNotFound)
		return
	}
	content, err := yaml.Marshal(found)
	if err != nil {
		http.Error(w, fmt.Sprintf("writing YAML: %v", err), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if s.resource.MetadataOnly {
		fmt.Fprintln(w, "# Only the metadata: the API server does not send the content.")
	}
	_, _ = w.Write(content)
}
