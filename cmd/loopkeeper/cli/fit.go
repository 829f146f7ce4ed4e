package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
	"github.com/loopkeeper/loopkeeper/worker/ollama"
	"github.com/loopkeeper/loopkeeper/worker/serve"
)

type fitOptions struct {
	context, slots int32
	gguf           string
}

func newFit(a *app) *cobra.Command {
	var o fitOptions
	c := &cobra.Command{
		Use: "fit MODEL", Short: "Say which machines can hold a model, and with which context", Args: cobra.MaximumNArgs(1),
		Long: "Say for every machine what a model needs there and what is available, by part, what would have to be unloaded, and the largest\n" +
			"context that fits now and on the empty machine. Nothing is loaded for it.\n\n" +
			"--gguf reads the header of a model file on this machine, for a model that no machine has yet; its first megabytes are enough.\n" +
			"It ends with exit code 1 when no machine that is up can hold the model.",
		Example: "  loopkeeper fit qwen3:32b\n  loopkeeper fit qwen3:32b --ctx 32768 --slots 4\n  loopkeeper fit --gguf Qwen3-30B-A3B-Q4_K_M.gguf",
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := o.request(cmd, args)
			if err != nil {
				return err
			}
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client) error { return a.fit(ctx, c, r) })
		},
	}
	f := c.Flags()
	f.Int32Var(&o.context, "ctx", 0, "context in `TOKENS` per slot (default as configured)")
	f.Int32Var(&o.slots, "slots", 0, "`N` calls at once (default as each machine is set)")
	f.StringVar(&o.gguf, "gguf", "", "model `FILE` in GGUF format instead of a model that a machine has")
	return c
}

// request reads the command line, and the header of the file.
func (o fitOptions) request(cmd *cobra.Command, args []string) (*coordinatorv1.FitRequest, error) {
	switch {
	case cmd.Flags().Changed("ctx") && o.context < 1:
		return nil, usagef("--ctx %d: want 1 token or more", o.context)
	case cmd.Flags().Changed("slots") && o.slots < 1:
		return nil, usagef("--slots %d: want 1 or more", o.slots)
	case len(args) == 0 && o.gguf == "":
		return nil, usageError{error: fmt.Errorf("MODEL is missing"), next: []string{"loopkeeper models", "loopkeeper fit --gguf FILE"}}
	}
	r := &coordinatorv1.FitRequest{Context: o.context, Slots: o.slots}
	if len(args) > 0 {
		r.Model = args[0]
	}
	if o.gguf == "" {
		return r, nil
	}
	facts, err := ollama.ReadGGUF(o.gguf)
	if err != nil {
		return nil, err
	}
	if r.Model == "" {
		r.Model = filepath.Base(o.gguf)
	}
	if r.Shape = serve.Shape(facts); r.Shape == nil {
		return nil, apierr.New(apierr.InvalidArgument, "%s does not tell what its need follows from: %s", o.gguf, strings.Join(facts.Unknown, ", ")).
			WithNext("pull the model on one machine, and ask by its name")
	}
	r.FileBytes = uint64(max(0, facts.Size))
	return r, nil
}

func (a *app) fit(ctx context.Context, c *client, r *coordinatorv1.FitRequest) error {
	out, err := c.Fit(ctx, r)
	if err != nil {
		return nearModels(ctx, c, []string{r.GetModel()}, err)
	}
	if len(out.GetNodes()) == 0 {
		return apierr.New(apierr.Unavailable, "no machine is known yet").WithNext("loopkeeper worker --insecure-lan  # on a machine with Ollama", "loopkeeper nodes")
	}
	news, err := fitNews(ctx, c, r, out)
	if err != nil {
		return err
	}
	if a.json() {
		plain := ui.Plain(out)
		plain["left_out"], plain["stays"] = news.LeftOut, news.Stays
		err = a.printJSON(plain)
	} else {
		err = a.printText(ui.Fit(a.style(a.stdout), out, news))
	}
	if err != nil || canHold(out, news) {
		return err
	}
	if a.json() {
		return exitWith(exitError)
	}
	return cannotHold(out)
}

// canHold says whether a machine that is up, and not left out, holds the model, or could once something else is unloaded.
func canHold(r *coordinatorv1.FitResponse, news ui.FitNews) bool {
	return slices.ContainsFunc(r.GetNodes(), func(n *coordinatorv1.NodeFit) bool {
		return n.GetState() == "up" && news.LeftOut[n.GetNode()] == "" && slices.Contains([]string{"loaded", "yes", "evict"}, n.GetVerdict())
	})
}

// cannotHold says what helps when no machine can hold a model now.
func cannotHold(r *coordinatorv1.FitResponse) error {
	e := apierr.New(apierr.CannotFit, "no machine that is up can hold %s at %d tokens now", r.GetModel(), r.GetContext())
	var most, empty int32
	unknown := false
	for _, n := range r.GetNodes() {
		if n.GetState() == "up" {
			most, empty = max(most, n.GetLargestContext()), max(empty, n.GetLargestEmpty())
			unknown = unknown || n.GetVerdict() == "unknown"
		}
	}
	switch {
	case most > 0 && most < r.GetContext():
		e = e.WithNext(fmt.Sprintf("loopkeeper fit %s --ctx %d  # fits now; models.contexts sets it", r.GetModel(), most))
	case empty >= r.GetContext():
		e = e.WithNext("loopkeeper nodes  # shows what takes the room", fmt.Sprintf("loopkeeper fit %s  # once that is gone", r.GetModel()))
	case empty > 0:
		e = e.WithNext(fmt.Sprintf("a context of at most %d tokens, which fits a machine on which nothing else is loaded", empty))
	}
	if unknown {
		e = e.WithNext("loopkeeper nodes  # says what is not known of the others")
	}
	return e.WithNext("a smaller model, or a smaller quantisation of it")
}
