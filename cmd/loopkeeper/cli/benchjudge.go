package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"

	"github.com/ollama/ollama/api"
	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/relay"
	"github.com/loopkeeper/loopkeeper/coordinator/judges"
)

type benchJudgeOptions struct {
	model, ollama string
	n, slots, ctx int
	own           bool
}

func newBenchJudge(a *app) *cobra.Command {
	var o benchJudgeOptions
	c := &cobra.Command{
		Use: "judge --model MODEL", Short: "Measure what a model's word is worth about reports of workers", Args: cobra.NoArgs,
		Long: "Measure what a model's word is worth about reports of workers. Code writes reports of what its workers said, and puts one defect " +
			"into half of them: a dropped item, a wrong number, filler, a rule that is not kept, some of them under padding or beside a planted line. The model is asked about " +
			"each in both orders of the possible answers. With --own it also judges reports that it wrote itself.\n\n" +
			"It uses the Ollama of the settings (OLLAMA_HOST) and no coordinator, and keeps nothing: `loopkeeper judges calibrate` measures on texts of your own and keeps the rates.",
		Example: "  loopkeeper bench judge --model qwen3:8b\n  loopkeeper bench judge --model qwen3:8b --own --subjects 60 -o json",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.benchJudge(cmd.Context(), o) },
	}
	f := c.Flags()
	f.StringVar(&o.model, "model", "", "`MODEL` to measure, such as qwen3:8b")
	f.IntVar(&o.n, "subjects", judges.DefaultN, "`N` good reports, and as many with a defect")
	f.BoolVar(&o.own, "own", false, "have it judge reports that it wrote itself, too")
	f.IntVar(&o.slots, "slots", 0, "`N` calls at once (default the slots of the settings)")
	f.IntVar(&o.ctx, "ctx", relay.DefaultContext, "`TOKENS` of context")
	f.StringVar(&o.ollama, "ollama", "", "`URL` of the Ollama (default that of the settings)")
	return c
}

func (a *app) benchJudge(ctx context.Context, o benchJudgeOptions) error {
	if o.model == "" {
		return usagef("--model is missing: name the model to measure")
	}
	if o.n < 1 || o.n > 500 || o.slots < 0 || o.ctx < 1024 {
		return usagef("want 1 to 500 --subjects, and --ctx of 1024 or more")
	}
	r, err := a.benchAt(relay.Options{Model: o.model, Tasks: o.n, Context: o.ctx}, o.ollama, o.slots)
	if err != nil {
		return err
	}
	defer os.RemoveAll(r.Dir) //nolint:errcheck // a folder for temporary files
	a.note("%d reports in both orders with %s: at least %d calls of the model", 2*o.n, o.model, 8*o.n)
	track, err := relay.Judges(ctx, r, o.own)
	if err != nil {
		return err
	}
	if a.json() {
		return a.printJSON(track)
	}
	return a.printText(track.Text())
}

// benchAt fills in where a benchmark finds its model, and a folder that the caller removes.
func (a *app) benchAt(r relay.Options, at string, slots int) (relay.Options, error) {
	r.Ollama, r.Parallel, r.Log = a.config.Worker.Ollama, a.config.Worker.Slots, a.log
	if at != "" {
		r.Ollama = at
	}
	if slots > 0 {
		r.Parallel = slots
	}
	base, err := url.Parse(r.Ollama)
	if err != nil || base.Host == "" {
		return r, usagef("--ollama %q: want a URL such as http://127.0.0.1:11434", r.Ollama)
	}
	r.Client = api.NewClient(base, http.DefaultClient)
	if r.Dir, err = os.MkdirTemp("", "loopkeeper-bench-"); err != nil {
		return r, fmt.Errorf("make a folder for the ledger of the benchmark: %w", err)
	}
	return r, nil
}
