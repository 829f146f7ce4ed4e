package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// records is the coordinator's book-keeping.
func (c *client) records() coordinatorv1.RecordServiceClient {
	return coordinatorv1.NewRecordServiceClient(c.conn)
}

func newWhy(a *app) *cobra.Command {
	var open string
	c := &cobra.Command{
		Use: "why RUN [SUBJECT] [QUESTION]", Short: "Say on what basis something came to be", Args: cobra.RangeArgs(1, 3),
		Long: "Say on what basis something came to be: from an output, a file, a step or an item back to what was handed in, with every try, " +
			"who did it, and who accepted it on which quotes.\n\n" +
			"SUBJECT is a file or another key, the name of an output, a step such as 3, or an item such as 3/7; left out it is the output result. " +
			"Facts are what code verified; opinions are what a model said and code could not verify; a lead is a model's words that another step went on from.\n\n" +
			"With a QUESTION the step that judged it, else the one that made it, is asked, with the input that it had: one call, in a run of its own.\n\n" +
			"What an answer names as an artifact, a prompt or a reply such as it was, --open prints.",
		Example: "  loopkeeper why 7f3k\n  loopkeeper why 7f3k docs/errors.md\n  loopkeeper why 7f3k docs/errors.md --open 9c1e5d20a7b3\n  loopkeeper why 7f3k 3/7 'Why was it sent back?'",
		RunE: func(cmd *cobra.Command, args []string) error {
			r := &coordinatorv1.WhyRequest{RunId: args[0]}
			if len(args) > 1 {
				r.Subject = args[1]
			}
			if len(args) > 2 {
				r.Question = strings.TrimSpace(args[2])
			}
			if open != "" && r.Question != "" {
				return usagef("--open prints what is there, and asks no QUESTION")
			}
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client) error { return a.why(ctx, c, r, open) })
		},
	}
	c.Flags().StringVar(&open, "open", "", "print this `ARTIFACT` of the answer, by the beginning of its hash")
	return c
}

func (a *app) why(ctx context.Context, c *client, r *coordinatorv1.WhyRequest, open string) error {
	done := func() {}
	if r.Question != "" {
		done = a.slow("asking; Ctrl-C gives up")
	}
	w, err := c.records().Why(ctx, r)
	done()
	if err != nil {
		return err
	}
	if open != "" {
		return a.openBody(ctx, c, r, w, open)
	}
	if a.json() {
		return a.printJSON(ui.Plain(w))
	}
	if err := a.noResultYet(ctx, c, r); err != nil {
		return err
	}
	l := &labelled{width: a.style(a.stdout).Width}
	for _, b := range w.GetBases() {
		l.basis(b)
	}
	for _, n := range w.GetNotes() {
		l.add("", "note", n)
	}
	if w.GetAnswer() != "" {
		l.text("\nanswer of " + ui.Line(w.GetAnsweredBy()) + " (an opinion):\n" + ui.Text(w.GetAnswer()) + "\n")
	}
	for _, b := range w.GetBases() {
		if bodies := b.GetBodies(); len(bodies) > 0 {
			a.next(whyAgain(r, " --open "+shortHash(bodies[0])+"  # prints that artifact"))
			break
		}
	}
	return a.printText(l.String())
}

// openBody prints the one body of an answer whose hash begins so.
func (a *app) openBody(ctx context.Context, c *client, r *coordinatorv1.WhyRequest, w *coordinatorv1.WhyResponse, hash string) error {
	var found []string
	for _, b := range w.GetBases() {
		for _, body := range b.GetBodies() {
			if sha := body.GetSha256(); strings.HasPrefix(sha, hash) && !slices.Contains(found, sha) {
				found = append(found, sha)
			}
		}
	}
	if len(found) != 1 {
		return apierr.New(apierr.NotFound, "%s a hash that begins with %q", ui.Plural(int64(len(found)), "artifact of this answer has", "artifacts of this answer have"), hash).WithNext(whyAgain(r, ""))
	}
	text, err := fetch(ctx, c, found[0])
	if err != nil {
		return err
	}
	if a.json() {
		return a.printJSON(map[string]any{"sha256": found[0], "text": text})
	}
	return a.printText(strings.TrimRight(ui.Text(text), "\n") + "\n")
}

// whyAgain is the command that gives the same answer, with what follows it.
func whyAgain(r *coordinatorv1.WhyRequest, then string) string {
	command := "loopkeeper why " + r.GetRunId()
	if r.GetSubject() != "" {
		command += " " + quote(r.GetSubject())
	}
	return command + then
}

// noResultYet says of a run under way that what is shown is how far it came, where it was asked for its result.
func (a *app) noResultYet(ctx context.Context, c *client, r *coordinatorv1.WhyRequest) error {
	if r.GetSubject() != "" && r.GetSubject() != mainOutput {
		return nil
	}
	found, err := c.GetRun(ctx, &coordinatorv1.GetRunRequest{RunId: r.GetRunId()})
	if err != nil {
		return err
	}
	run := found.GetRun()
	if run.GetEnded() == nil && !slices.Contains(run.GetOutputs(), mainOutput) {
		a.note("run %s is %s and has no result yet: this is how far it came", run.GetId(), run.GetState())
		a.next(a.afterwards(run)...)
	}
	return nil
}

// labelled are labelled lines for people, cut to the width of where they go.
type labelled struct {
	b     strings.Builder
	width int
}

func (l *labelled) String() string { return l.b.String() }

func (l *labelled) text(s string) { l.b.WriteString(s) }

// labelCells is how wide a label is.
const labelCells = 11

// add prints a text behind a label; where the place has a width it goes on under itself.
func (l *labelled) add(indent, label, text string) {
	lead := indent + label + strings.Repeat(" ", max(labelCells-len(label), 1))
	text = ui.Line(text)
	if room := l.width - len(lead); l.width > 0 && room > 20 {
		text = strings.ReplaceAll(ui.Fold(text, room, ""), "\n", "\n"+strings.Repeat(" ", len(lead)))
	}
	l.b.WriteString(lead + text + "\n")
}

func (l *labelled) all(label string, texts []string) {
	for _, t := range texts {
		l.add("  ", label, t)
	}
}

// basis prints one link of a reason.
func (l *labelled) basis(b *coordinatorv1.Basis) {
	head := []string{b.GetSubject()}
	for _, part := range []string{keyBeside(b), b.GetKind(), b.GetState()} {
		if part != "" {
			head = append(head, part)
		}
	}
	if b.GetModel() != "" {
		head = append(head, "by "+b.GetModel())
	}
	if b.GetNode() != "" {
		head = append(head, "on "+b.GetNode())
	}
	if b.GetSimulated() {
		head = append(head, "simulated")
	}
	l.text(ui.Line(strings.Join(head, "  ")) + "\n")
	l.all("from", b.GetInputs())
	l.all("try", b.GetTries())
	if b.GetVerdict() != "" {
		l.add("  ", "verdict", cmp.Or(b.GetJudged(), strings.ReplaceAll(b.GetVerdict(), "_", " ")))
	}
	l.all("fact", b.GetFacts())
	l.all("opinion", b.GetOpinions())
	l.all("reason", b.GetReasons())
	l.bodies(b.GetBodies())
}

// bodies prints what a link rests on, what is the same once: a result is mostly the reply as it came.
func (l *labelled) bodies(all []*coordinatorv1.Ref) {
	names := map[string][]string{}
	for _, body := range all {
		names[body.GetSha256()] = append(names[body.GetSha256()], body.GetName())
	}
	for _, body := range all {
		if same := names[body.GetSha256()]; same != nil {
			delete(names, body.GetSha256())
			l.add("  ", "body", strings.Join(same, " = ")+", "+ui.Count(int64(body.GetBytes()))+" bytes, artifact "+shortHash(body))
		}
	}
}

// shortHash is as much of a body's hash as people are shown.
func shortHash(b *coordinatorv1.Ref) string { return b.GetSha256()[:min(12, len(b.GetSha256()))] }

// keyBeside is a link's key, where that is not its name.
func keyBeside(b *coordinatorv1.Basis) string {
	if b.GetKey() == b.GetSubject() {
		return ""
	}
	return b.GetKey()
}
