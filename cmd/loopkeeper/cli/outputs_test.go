package cli

import (
	"testing"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// A ledger may hold outputs without a value: they are null, and the run's state still decides how the command ends.
func TestAnOutputWithoutAValueIsNull(t *testing.T) {
	got, err := (&app{}).outputs(t.Context(), nil, &coordinatorv1.GetResultResponse{Outputs: []*coordinatorv1.Output{{Name: "nothing"}}})
	if err != nil || len(got) != 1 || got[0].Value != nil || got[0].text() != "null\n" {
		t.Fatalf("%+v, %v", got, err)
	}
}
