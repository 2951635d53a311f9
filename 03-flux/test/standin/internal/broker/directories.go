package broker

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"example.com/workbook/03-flux/test/standin/internal/words"
)

// maxSocketPath is the maximum length of the path of a socket.
const maxSocketPath = 107

// makeDirectories creates rundir and, on rank 0, statedir if they do not exist, and sets the path of the socket. The
// broker's user must own all of them.
func (b *broker) makeDirectories() error {
	if err := b.makeDirectory("rundir", "/tmp"); err != nil {
		return words.Errorf("rundir %v", err)
	}
	if b.config.Rank == 0 {
		if err := b.makeDirectory("statedir", "/var/tmp"); err != nil {
			return words.Errorf("statedir %v", err)
		}
	} else {
		delete(b.options.Attributes, "statedir")
	}
	uri, isSet := b.options.Attributes["local-uri"]
	if !isSet {
		b.socket = filepath.Join(b.options.Attributes["rundir"], "local-"+strconv.Itoa(b.config.Rank))
		b.options.Attributes["local-uri"] = "local://" + b.socket
		return nil
	}
	var isLocal bool
	if b.socket, isLocal = strings.CutPrefix(uri, "local://"); !isLocal {
		return words.Error("local-uri is malformed")
	}
	if err := checkDirectory(filepath.Dir(b.socket)); err != nil {
		return words.Errorf("local-uri directory %v", err)
	}
	if len(b.socket) > maxSocketPath {
		return words.Errorf("local-uri length of %d bytes exceeds max %d AF_UNIX socket path length", len(b.socket), maxSocketPath)
	}
	return nil
}

// makeDirectory creates the directory that an attribute names, or one with a new name in the directory for temporary
// files. A directory that it creates is removed with the broker.
func (b *broker) makeDirectory(attribute, missing string) error {
	dir, isSet := b.options.Attributes[attribute]
	made := true
	switch {
	case !isSet:
		if tmp := os.Getenv("TMPDIR"); tmp != "" {
			missing = tmp
		}
		var err error
		if dir, err = os.MkdirTemp(missing, "flux-"); err != nil {
			return words.Errorf("cannot create directory in %s: %v", missing, words.System(err))
		}
		b.options.Attributes[attribute] = dir
	case !exists(dir):
		if err := os.Mkdir(dir, 0o700); err != nil {
			return words.Errorf("error creating %s: %v", dir, words.System(err))
		}
	default:
		made = false
	}
	if made {
		b.cleanup = append(b.cleanup, func() { os.RemoveAll(dir) })
	}
	return checkDirectory(dir)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// checkDirectory fails where a broker does: if another user owns the directory, even if it is writable.
func checkDirectory(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return words.Errorf("cannot stat %s: %v", path, words.System(err))
	}
	switch stat, _ := info.Sys().(*syscall.Stat_t); {
	case stat == nil || int(stat.Uid) != os.Getuid():
		return words.Errorf("%s is not owned by instance owner: Operation not permitted", path)
	case !info.IsDir():
		return words.Errorf("%s: Not a directory", path)
	case info.Mode()&fs.ModePerm&0o700 != 0o700:
		return words.Errorf("%s does not have owner=rwx permissions", path)
	}
	return nil
}
