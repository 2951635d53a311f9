package worker

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// saveOn runs a worker whose record can be saved only at the given attempt, and returns what it reported.
func saveOn(t *testing.T, attempt int) string {
	t.Helper()
	dir := t.TempDir()
	obstacle := filepath.Join(dir, recordFile+".new")
	if err := os.Mkdir(obstacle, 0o755); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	message, attempts := filepath.Join(t.TempDir(), "message"), 0
	w := &Worker{
		Command: []string{"true"}, Dir: dir, Termination: message, Pause: time.Millisecond, Grace: time.Second,
		Stdout: &log, Stderr: &log,
		at: func(step string) {
			if step == recordFile+": write" {
				if attempts++; attempts == attempt {
					_ = os.Remove(obstacle)
				}
			}
		},
	}
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
	return readFile(t, message)
}

// A disk that is full for a moment causes neither the loss of the record nor a second run of the command.
func TestARecordThatIsSavedLate(t *testing.T) {
	if got, err := ParseRecord(saveOn(t, 3)); err != nil || got.ExitCode != 0 || got.Tries != 1 {
		t.Errorf("reported %+v, %v", got, err)
	}
}

// The record counts that the kubelet reads. It is reported even if it cannot be saved.
func TestARecordThatIsNeverSaved(t *testing.T) {
	if got, err := ParseRecord(saveOn(t, -1)); err != nil || got.ExitCode != 0 || got.Tries != 1 {
		t.Errorf("reported %+v, %v", got, err)
	}
}
