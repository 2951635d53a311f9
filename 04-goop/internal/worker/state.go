package worker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// The files of the directory. The count of tries is written before each try, so that a container that is killed again and
// again does not run the command without end.
const (
	recordFile = "record"
	triesFile  = "tries"
)

// state is the part of a worker that survives a restart of the container.
type state struct {
	dir string
	at  func(step string)
}

// record returns the record, if there is one.
func (s state) record() (record Record, found bool, err error) {
	text, err := os.ReadFile(filepath.Join(s.dir, recordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, false, nil
	}
	if err != nil {
		return Record{}, false, fmt.Errorf("looking for a record: %w", err)
	}
	record, err = ParseRecord(string(text))
	if err != nil {
		return Record{}, false, fmt.Errorf("reading %s: %w", filepath.Join(s.dir, recordFile), err)
	}
	return record, true, nil
}

func (s state) save(record Record) error {
	text, err := encode(record)
	if err != nil {
		return err
	}
	return s.write(recordFile, text)
}

// tries returns how many tries have begun.
func (s state) tries() (int, error) {
	path := filepath.Join(s.dir, triesFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("looking for the number of tries: %w", err)
	}
	tries, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || tries < 0 {
		return 0, fmt.Errorf("reading %s: %q is no number of tries", path, text)
	}
	return tries, nil
}

func (s state) count(tries int) error {
	return s.write(triesFile, []byte(strconv.Itoa(tries)+"\n"))
}

// write replaces a file atomically. When it returns, the file survives a crash of the machine.
func (s state) write(name string, content []byte) error {
	s.at(name + ": write")
	path := filepath.Join(s.dir, name)
	if err := writeSynced(path+".new", content, 0o644); err != nil {
		return fmt.Errorf("writing down the %s: %w", name, err)
	}
	s.at(name + ": rename")
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("writing down the %s: %w", name, err)
	}
	s.at(name + ": sync")
	if err := syncDir(s.dir); err != nil {
		return fmt.Errorf("writing down the %s: %w", name, err)
	}
	s.at(name + ": written")
	return nil
}

func writeSynced(path string, content []byte, mode fs.FileMode) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
