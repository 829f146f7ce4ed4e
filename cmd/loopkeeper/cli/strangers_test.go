package cli

import (
	"slices"
	"testing"

	"github.com/loopkeeper/loopkeeper/configs"
)

// A typing error in a setting about a model changes nothing, and so nobody notices: it is said, with what was meant.
func TestSettingsOfAModelThatNobodyHas(t *testing.T) {
	var c configs.Config
	c.Models.Contexts = map[string]int{"qwen:8b": 4096, "llama3.2": 8192, "deepseek-r1:32b": 4096}
	c.Models.Pins = configs.Pins{"qwen3:8b": {"den"}, "lama3.2:latest": {"den"}}
	c.Resources = configs.Resources{"model:qwen3:9b": {Cap: 1}, "http:example.org": {Cap: 1}}
	got := strangers(c, []string{"llama3.2:latest", "qwen3:8b"}, "no machine has")
	want := []string{"models.contexts in the settings speaks of qwen:8b, which no machine has; there is qwen3:8b",
		"models.pins in the settings speaks of lama3.2:latest, which no machine has; there is llama3.2:latest",
		"resources in the settings speaks of qwen3:9b, which no machine has; there is qwen3:8b"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if got := strangers(c, nil, "no machine has"); len(got) > 0 {
		t.Errorf("of an empty fleet: %q", got)
	}
}
