package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/loopkeeper/loopkeeper/configs"
)

// strangers says of each model that the settings speak of and nobody has which one may have been meant. lacks ends the sentence, such as
// "no machine has". Of a model that is like none there is nothing is said: it may be pulled yet.
func strangers(c configs.Config, have []string, lacks string) (said []string) {
	for _, setting := range []struct {
		key    string
		models []string
	}{
		{"models.contexts", slices.Sorted(maps.Keys(c.Models.Contexts))},
		{"models.pins", slices.Sorted(maps.Keys(c.Models.Pins))},
		{"resources", limited(c.Resources)},
	} {
		for _, model := range setting.models {
			if slices.Contains(have, tagged(model)) {
				continue
			}
			if near := nearest(tagged(model), have); len(near) > 0 {
				said = append(said, fmt.Sprintf("%s in the settings speaks of %s, which %s; there is %s", setting.key, model, lacks, strings.Join(near, ", ")))
			}
		}
	}
	return said
}

// limited are the models that resources limit the calls of.
func limited(r configs.Resources) (models []string) {
	for _, name := range slices.Sorted(maps.Keys(r)) {
		if model, ok := strings.CutPrefix(name, "model:"); ok {
			models = append(models, model)
		}
	}
	return models
}
