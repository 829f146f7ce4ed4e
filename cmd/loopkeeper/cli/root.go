// Package cli is the command line: one file per subcommand, and the only place beside configs that reads flags, files and
// the environment.
package cli

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/configs"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// app is what the commands share: where to read and write, and the settings.
type app struct {
	stdin          *os.File
	stdout, stderr *os.File
	flags          globals
	own            func(*configs.Config) map[string]string // a command's own flags over the settings; nil for most
	config         configs.Config
	origins        configs.Origins
	log            *slog.Logger
	args           []string // what the command line said after the program's name
	command        string   // the command that runs, such as result
	leave          bool     // Ctrl-C ends the command at once instead of asking what to do with the run
	giveUp         bool     // a run that waits for a person is watched no longer
	effects        string   // file of the simulated tool effect.log; "" for none
	submitting     bool     // the coordinator was asked to start a run and has not answered yet
}

// Main runs the command that args name and returns the process's exit code.
func Main(args []string, stdin, stdout, stderr *os.File) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr, args: args, log: slog.New(slog.DiscardHandler)}
	root := newRoot(a)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	var quiet exitWith
	switch {
	case err == nil || errors.As(err, &quiet):
	case ctx.Err() != nil && (errors.Is(err, context.Canceled) || codeOf(err) == apierr.Cancelled):
		a.interrupted(cmd)
		err = exitWith(exitError)
	default:
		a.report(cmd, err)
	}
	return exitCode(err)
}

// interrupted says what Ctrl-C left behind when there was no run to watch yet.
func (a *app) interrupted(cmd *cobra.Command) {
	switch {
	case a.submitting:
		a.note("interrupted while the run was being submitted: it may have started")
		a.next("loopkeeper runs")
	case cmd.Flags().Lookup("dry-run") != nil: // the commands that start runs
		a.note("interrupted: nothing was started")
	default:
		a.note("interrupted")
	}
}

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "loopkeeper",
		Short: "Long jobs on the GPUs of your home: the loop is a program, the model is a function, the GPUs are one pool",
		Long: "loopkeeper runs long jobs on the GPUs of your home.\n\nThe loop is a program, the model is a function, the GPUs are one pool.\n" +
			"Start with `loopkeeper up` on one machine, `loopkeeper worker --insecure-lan` on the others, then `loopkeeper map`.\n\n" + exitHelp,
		Version:       fullVersion(),
		Example:       "  loopkeeper up\n  loopkeeper map --model qwen3:8b --prompt 'Summarise: {{item}}' 'docs/*.md' --out out.jsonl",
		SilenceErrors: true, SilenceUsage: true,
		Args:              cobra.NoArgs,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.configure(cmd) },
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	a.flags.register(root)
	root.SetVersionTemplate("loopkeeper {{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usagef("%w", err) })
	root.SetUsageTemplate(helpTemplate(root.UsageTemplate()))
	root.SuggestionsMinimumDistance = nearEnough
	root.AddCommand(
		newUp(a), newWorker(a), newNodes(a), newModels(a), newFit(a),
		newMap(a), newPlan(a), newRun(a), newAsk(a), newWorkflows(a), newSchedule(a), newTools(a), newTypes(a), newPrompts(a), newJudges(a),
		newRuns(a), newShow(a), newWatch(a), newResult(a), newTrace(a), newExplain(a),
		newApprovals(a), newApprove(a), newReject(a), newAnswer(a), newResolve(a), newSuspend(a), newResumeRun(a), newRollback(a), newRetry(a), newFork(a), newCancel(a),
		newWhy(a), newAudit(a), newReplay(a), newExport(a), newImport(a), newVerify(a), newBackup(a), newPrune(a),
		newProbe(a), newDoctor(a), newBench(a), newConfig(a), newVersion(a), newDemo(a), newScriptHost(a),
	)
	root.Args = checkArgs(root.Args)
	narrow(root)
	for _, c := range root.Commands() {
		strict(c)
	}
	return root
}

// globals are the flags of every command.
type globals struct {
	config, server, output, fleet, dataDir, logLevel string
}

func (g *globals) register(root *cobra.Command) {
	f := root.PersistentFlags()
	f.StringVar(&g.config, "config", "", "read the settings from this `FILE`")
	f.StringVar(&g.server, "server", "", "`ADDRESS` of the coordinator, host or host:port (default port 7700)")
	f.StringVarP(&g.output, "output", "o", "table", "`FORMAT`: table, json or jsonl")
	f.StringVar(&g.fleet, "fleet", "", "`ID` of the fleet")
	f.StringVar(&g.dataDir, "data-dir", "", "`FOLDER` for ledger, artifacts and node id")
	f.StringVar(&g.logLevel, "log-level", "", "`LEVEL`: debug, info, warn or error")
}

// apply puts the flags that were given over the settings.
func (g *globals) apply(c *configs.Config) map[string]string {
	return override(given{"fleet", "fleet", g.fleet, &c.Fleet}, given{"data_dir", "data-dir", g.dataDir, &c.DataDir},
		given{"log_level", "log-level", g.logLevel, &c.LogLevel})
}

// given is the text of a flag, empty when it was not given, and the setting that it overrides.
type given struct {
	key, flag, text string
	setting         *string
}

// override sets every setting whose flag was given and returns those flags by key.
func override(flags ...given) map[string]string {
	out := map[string]string{}
	for _, f := range flags {
		if f.text != "" {
			*f.setting, out[f.key] = f.text, f.flag
		}
	}
	return out
}

// configure reads the settings. It is the first thing that every command does.
func (a *app) configure(cmd *cobra.Command) error {
	if err := a.checkOutput(); err != nil {
		return err
	}
	if err := checkText(cmd); err != nil {
		return err
	}
	a.command = cmd.Name()
	s := configs.FromSystem()
	s.File = a.flags.config
	s.Flags = func(c *configs.Config) map[string]string {
		out := a.flags.apply(c)
		if a.own != nil {
			for key, flag := range a.own(c) {
				out[key] = flag
			}
		}
		return out
	}
	var err error
	if a.config, a.origins, err = configs.Load(s); err != nil {
		return err
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(a.config.LogLevel)); err != nil {
		return err
	}
	a.log = slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: level}))
	if !a.json() {
		a.log = slog.New(plainLog{w: a.stderr, lock: &sync.Mutex{}, level: level})
	}
	return nil
}

func (a *app) checkOutput() error {
	switch a.flags.output {
	case "table", "json", "jsonl":
		return nil
	default:
		return usagef("--output %q: want table, json or jsonl", a.flags.output)
	}
}

// json says whether people asked for JSON, on one line per object or in one piece.
func (a *app) json() bool { return a.flags.output == "json" || a.flags.output == "jsonl" }

// printJSON prints one object in the form that was asked for.
func (a *app) printJSON(v any) error {
	write := ui.WriteJSON
	if a.flags.output == "jsonl" {
		write = ui.WriteJSONLine
	}
	if err := write(a.stdout, v); err != nil {
		return unwritten{err}
	}
	return nil
}

// printList prints many objects: one per line as jsonl, else one object that holds them under name.
func (a *app) printList(name string, list []any) error {
	if a.flags.output != "jsonl" {
		return ui.WriteJSON(a.stdout, map[string]any{name: list})
	}
	for _, v := range list {
		if err := ui.WriteJSONLine(a.stdout, v); err != nil {
			return err
		}
	}
	return nil
}

// printText prints text to stdout.
func (a *app) printText(text string) error {
	if _, err := io.WriteString(a.stdout, text); err != nil {
		return unwritten{err}
	}
	return nil
}
