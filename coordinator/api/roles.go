package api

import (
	"fmt"
	"slices"
	"strings"

	"github.com/loopkeeper/loopkeeper/coordinator/judges"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/run/panel"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

func roleMessages(roles map[string][]run.RoleModel) (out []*coordinatorv1.Role) {
	for _, name := range sortedKeys(roles) {
		r := &coordinatorv1.Role{Name: name}
		for _, m := range roles[name] {
			r.Models = append(r.Models, m.Model)
		}
		out = append(out, r)
	}
	return out
}

// judgeWords say of each judge that was calibrated when a run began what was known of it.
func judgeWords(list []run.Calibrated) (out []string) {
	for _, c := range list {
		known := panel.Calibration{N: c.N, TPR: c.TPR, TNR: c.TNR}
		text := fmt.Sprintf("%s (%s)", c.Model, judges.Worth(panel.Judge{Calibration: known.Word(), N: c.N, TPR: c.TPR, TNR: c.TNR}))
		if c.Type != "" {
			text += " on " + c.Type
		}
		out = append(out, text)
	}
	return out
}

// admitRole accepts a role of which one model at least can be used, and notes which cannot.
func (s *Server) admitRole(snap scheduler.Snapshot, role string, asks bool, out *coordinatorv1.SubmitResponse) error {
	var first error
	admitted := 0
	var notes []string
	for _, m := range s.o.Roles[role] {
		err := s.admitModel(snap, m.Model, asks, out)
		switch {
		case err == nil:
			admitted++
		default:
			notes = append(notes, fmt.Sprintf("the role %s goes on without %s: %s", role, m.Model, apierr.As(err).Message))
			if first == nil {
				first = err
			}
		}
	}
	if admitted == 0 {
		e := *apierr.As(first)
		e.Message = fmt.Sprintf("no model of the role %s can be used: %s", role, e.Message)
		return &e
	}
	out.Notes = append(out.Notes, notes...)
	return nil
}

// roleFindings are roles that nobody can play, and judges that cannot do what judges are for.
func (s *Server) roleFindings(f known, records []judges.Record) (out []*coordinatorv1.Finding) {
	if len(f.views) == 0 {
		return nil
	}
	for _, role := range sortedKeys(s.o.Roles) {
		models := s.o.Roles[role]
		if !slices.ContainsFunc(models, func(m run.RoleModel) bool { return has(f.snap, m.Model) }) {
			one := &coordinatorv1.Finding{Code: "role_without_model", Text: fmt.Sprintf("nobody can play the role %s: no machine has %s", role, names(models)),
				Next: []string{"loopkeeper models pull " + models[0].Model + " --everywhere", "change roles." + role + " in the settings: loopkeeper config show"}}
			out = append(out, one)
		}
	}
	list := s.o.Roles[judgeRole]
	if len(list) == 0 {
		return out
	}
	if families := familiesOf(f.snap, list); len(families) == 1 {
		out = append(out, &coordinatorv1.Finding{Code: "judges_one_family",
			Text: fmt.Sprintf("all models of the role judge that a machine has are of one family (%s): they err together, and one judges its own family's work", families[0]),
			Next: []string{"add a model of another family to roles.judge in the settings", "loopkeeper models"}})
	}
	if missing := s.uncalibrated(records); len(missing) == len(list) {
		out = append(out, &coordinatorv1.Finding{Code: "judges_uncalibrated",
			Text: fmt.Sprintf("no judge is calibrated (%s): what their word is worth is not known, and verdicts say so", strings.Join(missing, ", ")),
			Next: []string{"loopkeeper judges calibrate"}})
	}
	return out
}

func names(models []run.RoleModel) string {
	var out []string
	for _, m := range models {
		out = append(out, m.Model)
	}
	if n := len(out); n > 1 {
		return strings.Join(out[:n-1], ", ") + " or " + out[n-1]
	}
	return strings.Join(out, "")
}

// familiesOf are the families of models that a machine has.
func familiesOf(snap scheduler.Snapshot, models []run.RoleModel) (out []string) {
	for _, m := range models {
		family := m.Family
		if family == "" {
			family = panel.Family(m.Model)
		}
		if has(snap, m.Model) && !slices.Contains(out, family) {
			out = append(out, family)
		}
	}
	return out
}
