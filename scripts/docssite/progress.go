package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// progress is what the start page shows of the exercises, besides their list.
type progress struct {
	// Done is null where Error says why.
	Done  []string `json:"done"`
	Error string   `json:"error,omitempty"`
}

// siteHandler serves the site in dir, with the progress of the reader of the repository.
func siteHandler(dir, repo string) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir(dir)))
	mux.HandleFunc("GET /progress.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		// Text of a file that is not ours cannot end the script: json.Marshal escapes <, > and &.
		text, err := json.Marshal(readProgress(repo))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintf(w, "window.progress = %s;\n", text)
	})
	return mux
}

// readProgress reads what make learn has noted in the repository. Without a note nothing is done yet.
func readProgress(repo string) progress {
	name := filepath.Join(repo, ".learn", "progress.json")
	content, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return progress{Done: []string{}}
	}
	var notes struct {
		Version   int
		Exercises map[string]struct{ Done time.Time }
	}
	if err == nil {
		err = json.Unmarshal(content, &notes)
	}
	if err == nil && notes.Version != 1 {
		err = fmt.Errorf("it has format %d, and this site knows format 1", notes.Version)
	}
	if err != nil {
		return progress{Error: fmt.Sprintf("The progress cannot be shown. Reading %s: %v", name, err)}
	}
	p := progress{Done: []string{}}
	for id, exercise := range notes.Exercises {
		if !exercise.Done.IsZero() {
			p.Done = append(p.Done, id)
		}
	}
	slices.Sort(p.Done)
	return p
}
