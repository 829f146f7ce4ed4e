package cli

import (
	"strings"
	"testing"
)

// The worker knows where the item goes, also when the prompt does not say: a second {{item}} added here sent each
// document twice.
func TestPromptGoesOutAsWritten(t *testing.T) {
	for _, prompt := range []string{"Sum {{ item }}", "Sum {{item}}", "Summarise in three points."} {
		o := mapOptions{model: "m", prompt: prompt, each: "file"}
		if err := o.complete(); err != nil || o.prompt != prompt {
			t.Errorf("%q became %q, %v", prompt, o.prompt, err)
		}
	}
	o := mapOptions{model: "m", prompt: "Sum {{file}}", each: "file"}
	if err := o.complete(); err == nil || !strings.Contains(err.Error(), "{{file}}") {
		t.Errorf("an unknown placeholder: %v", err)
	}
}
