package configs

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// Roles gives roles, such as planner and judge, the models that play them, in order of preference. The first is asked first; the next
// when the first fails in a way that only another model can help. The judges of a subject are a panel of two families from the list.
type Roles map[string][]RoleModel

// RoleModel is a model that plays a role: in the file its name, or {model: NAME, family: FAMILY}.
type RoleModel struct {
	// Model is its name, such as "qwen3:8b".
	Model string `yaml:"model" json:"model"`
	// Family is what it is a relative of, where its name does not tell: "qwen". Default: by its name.
	Family string `yaml:"family" json:"family,omitempty"`
}

// UnmarshalYAML takes a name as well as a table.
func (m *RoleModel) UnmarshalYAML(raw []byte) error {
	if err := yaml.Unmarshal(raw, &m.Model); err == nil {
		return nil
	}
	type fields RoleModel
	return yaml.NewDecoder(bytes.NewReader(raw), yaml.Strict(), yaml.DisallowUnknownField()).Decode((*fields)(m))
}

// String is "my-tune of llama".
func (m RoleModel) String() string {
	if m.Family == "" {
		return m.Model
	}
	return m.Model + " of " + m.Family
}

// String joins the table.
func (r Roles) String() string {
	return table(r, func(models []RoleModel) string {
		var all []string
		for _, m := range models {
			all = append(all, m.String())
		}
		return strings.Join(all, ", ")
	})
}

var roleName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)

// validateRoles returns the key and the fault of the first role, or the folder of prompts, that cannot work.
func validateRoles(c *Config) (string, error) {
	if c.Prompts != "" && !filepath.IsAbs(c.Prompts) {
		return "prompts", fmt.Errorf("want a folder from the root on, such as /home/me/prompts, got %q", c.Prompts)
	}
	for _, role := range slices.Sorted(maps.Keys(c.Roles)) {
		key, models := "roles."+role, c.Roles[role]
		switch {
		case !roleName.MatchString(role):
			return key, fmt.Errorf("want a name of a-z 0-9 - _ such as judge, without a colon, which is how a model is told from a role, got %q", role)
		case len(models) == 0:
			return key, fmt.Errorf("want at least one model, such as [\"qwen3:8b\"]")
		}
		for i, m := range models {
			at := fmt.Sprintf("%s[%d]", key, i)
			switch {
			case strings.TrimSpace(m.Model) == "":
				return at, fmt.Errorf("want the name of a model, such as qwen3:8b")
			case c.Roles[m.Model] != nil:
				return at, fmt.Errorf("want a model, got the role %s", m.Model)
			case slices.ContainsFunc(models[:i], func(o RoleModel) bool { return o.Model == m.Model }):
				return at, fmt.Errorf("%s is in the list twice", m.Model)
			}
		}
	}
	return "", nil
}
