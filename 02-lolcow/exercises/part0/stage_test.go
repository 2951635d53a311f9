package part0

import (
	"path/filepath"
	"testing"

	"example.com/workbook/shared/exercise"
)

// lastOfStage2 is the last step that stage 2 passes: those after it add fields of the reader's own to the spec.
const lastOfStage2 = "15c"

// Stage 2 is the same operator in production quality: it has all that the steps up to there ask for.
func TestStage2PassesTheLastStep(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts an API server")
	}
	root, err := workbook()
	if err != nil {
		t.Fatal(err)
	}
	last, err := exercise.Find(root, lastOfStage2)
	if err != nil {
		t.Fatal(err)
	}
	result, err := exercise.Run(t.Context(), last, filepath.Join(root, "02-lolcow"), exercise.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range result.Behaviours {
		if !one.OK {
			t.Errorf("%s: %s\n%q", one.Name, one.Seen, one.Timeline)
		}
	}
	if !result.OK() || len(result.Behaviours) < 10 {
		t.Errorf("%d behaviours; %+v %s", len(result.Behaviours), result.Died, result.Output)
	}
}
