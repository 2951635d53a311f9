package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// envtest is the archive that setup-envtest downloads: what is in it.
var envtest = []string{"etcd", "kube-apiserver", "kubectl"}

// publish answers as the hosts do on which the programs of a folder are published: setup-envtest's archive of a version of
// Kubernetes, Kubernetes' single files, kwok.
func publish(dir, version string) (map[string]http.Handler, error) {
	archive, err := pack(dir)
	if err != nil {
		return nil, err
	}
	sum := sha512.Sum512(archive)
	raw, files, api, github := http.NewServeMux(), http.NewServeMux(), http.NewServeMux(), http.NewServeMux()
	platform := runtime.GOOS + "-" + runtime.GOARCH
	const archivePath = "/kubernetes-sigs/controller-tools/releases/download/"
	raw.HandleFunc("/kubernetes-sigs/controller-tools/HEAD/envtest-releases.yaml", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "releases:\n  %s:\n    envtest-%s-%s.tar.gz:\n      hash: %s\n      selfLink: https://github.com%senvtest.tar.gz\n",
			version, version, platform, hex.EncodeToString(sum[:]), archivePath)
	})
	content := func(w http.ResponseWriter, r *http.Request, name string, data []byte) {
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(data))
	}
	github.HandleFunc(archivePath, func(w http.ResponseWriter, r *http.Request) { content(w, r, "envtest.tar.gz", archive) })
	files.HandleFunc("/release/"+version+"/bin/"+runtime.GOOS+"/"+runtime.GOARCH+"/{file}", func(w http.ResponseWriter, r *http.Request) {
		name, summed := strings.CutSuffix(r.PathValue("file"), ".sha256")
		data, err := os.ReadFile(filepath.Join(dir, filepath.Base(name)))
		if err != nil {
			http.NotFound(w, r)
			return
		}
		if summed {
			data = []byte(sumOf(data))
		}
		content(w, r, "", data)
	})
	kwok, err := os.ReadFile(filepath.Join(dir, "kwok"))
	if err != nil {
		return nil, fmt.Errorf("reading what is to be published: %w", err)
	}
	api.HandleFunc("/repos/kubernetes-sigs/kwok/releases/tags/{version}", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"assets": [{"name": "kwok-%s", "digest": "sha256:%s", "browser_download_url": "https://github.com/kwok"}]}`, platform, sumOf(kwok))
	})
	github.HandleFunc("/kwok", func(w http.ResponseWriter, r *http.Request) { content(w, r, "", kwok) })
	return map[string]http.Handler{
		"raw.githubusercontent.com": raw, "dl.k8s.io": files, "api.github.com": api, "github.com": github,
	}, nil
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// pack makes the archive, compressed as the published one is.
func pack(dir string) ([]byte, error) {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	archive := tar.NewWriter(zipped)
	for _, name := range envtest {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, fmt.Errorf("reading what is to be published: %w", err)
		}
		header := &tar.Header{Name: "controller-tools/envtest/" + name, Mode: 0o755, Size: int64(len(data))}
		if err := archive.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("packing %s: %w", name, err)
		}
		if _, err := archive.Write(data); err != nil {
			return nil, fmt.Errorf("packing %s: %w", name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	if err := zipped.Close(); err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	return out.Bytes(), nil
}
