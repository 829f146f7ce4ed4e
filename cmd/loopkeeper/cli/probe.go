package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/probe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// issues is where a recording of a machine that is reported wrong is attached.
const issues = "https://github.com/loopkeeper/loopkeeper/issues"

type probeOptions struct {
	raw, from string
	timeout   time.Duration
}

func newProbe(a *app) *cobra.Command {
	var o probeOptions
	c := &cobra.Command{
		Use: "probe", Short: "Show what this machine has, and where each number comes from", Args: cobra.NoArgs,
		Long: "Show what this machine has: devices, the memory that they draw on, and where each number comes from. It needs no daemon.\n\n" +
			"? is a number that the machine does not tell, which is not zero. What you know better goes into the settings under\n" +
			"worker.hardware, and is shown as override. A worker uses the same report.\n\n" +
			"When something is wrong: --raw saves all that was read, masked, as a folder to attach to an issue, and --from probes such a\n" +
			"folder on any machine.",
		Example: "  loopkeeper probe\n  loopkeeper probe -o json\n  loopkeeper probe --raw my-machine\n  loopkeeper probe --from my-machine",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.probe(cmd.Context(), o) },
	}
	f := c.Flags()
	f.StringVar(&o.raw, "raw", "", "save all that was read in this `FOLDER`, new or empty, with names, serial numbers and UUIDs masked")
	f.StringVar(&o.from, "from", "", "probe the recorded machine in this `FOLDER` instead of this one")
	f.DurationVar(&o.timeout, "timeout", probe.DefaultTimeout, "how long the machine may take to answer")
	_ = f.MarkHidden("timeout") // it exists
	return c
}

func (a *app) probe(ctx context.Context, o probeOptions) error {
	switch {
	case o.raw != "" && o.from != "":
		return usagef("--raw saves what this machine says, --from asks no machine: give one of them")
	case o.timeout <= 0:
		return usagef("--timeout %s: want a positive duration such as 20s", o.timeout)
	}
	machine, given := probe.ThisMachine(), overrides(a.config.Worker.Hardware)
	if o.from != "" {
		var err error
		if machine, err = openRecording(o.from); err != nil {
			return err
		}
		given = hwprobe.Overrides{} // they are about this machine
	}
	var recorder *source.Recorder
	if o.raw != "" {
		var err error
		if recorder, err = record(machine, o.raw); err != nil {
			return err
		}
		machine = recorder.Machine()
	}
	r := probe.New(probe.Options{Machine: machine, Overrides: given, FirstTimeout: o.timeout}).Probe(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if recorder != nil {
		if err := recorder.Close(); err != nil {
			return apierr.Wrap(err, apierr.Unavailable, "save the recording").WithNext("loopkeeper probe --raw FOLDER  # a folder that you may write")
		}
	}
	return a.showProbe(r, recorder, o.raw)
}

func (a *app) showProbe(r hwprobe.Report, recorder *source.Recorder, dir string) error {
	var err error
	if a.json() {
		err = a.printJSON(r)
	} else {
		err = a.printText(ui.Probe(a.style(a.stdout), r))
	}
	if err == nil && recorder != nil {
		a.tellRecording(recorder, dir)
	}
	return err
}

// tellRecording says what was saved, what was masked in it, and what to do with it.
func (a *app) tellRecording(r *source.Recorder, dir string) {
	files, commands, calls := r.Asked()
	a.note("saved in %s: what %s, %s and %s of the system told", dir, ui.Plural(int64(files), "file", "files"),
		ui.Plural(int64(commands), "command", "commands"), ui.Plural(int64(calls), "call", "calls"))
	var masked []string
	for _, c := range r.Masked() {
		many := c.Sort + "s"
		if strings.HasSuffix(c.Sort, "s") {
			many = c.Sort + "es"
		}
		masked = append(masked, ui.Plural(int64(c.N), c.Sort, many))
	}
	if len(masked) == 0 {
		masked = []string{"nothing: no name, serial number or UUID was found"}
	}
	a.note("masked: %s", strings.Join(masked, ", "))
	a.note("read through it, it is plain text: what is still private must not leave this machine; then attach it, zipped, to an issue at %s", issues)
	a.next("loopkeeper probe --from " + dir + "  # shows what the recording says, on any machine")
}

// record prepares a recording in dir. The names of who runs this are masked wherever they stand.
func record(m source.Machine, dir string) (*source.Recorder, error) {
	var users []string
	if u, err := user.Current(); err == nil {
		_, name, windows := strings.Cut(u.Username, `\`)
		if !windows {
			name = u.Username
		}
		users = append(users, name, filepath.Base(u.HomeDir))
	}
	r, err := source.Record(m, dir, users...)
	switch {
	case errors.Is(err, source.ErrNotEmpty):
		return nil, apierr.New(apierr.Conflict, "%s holds something already, and a recording goes into a new or empty folder", dir).
			WithNext("loopkeeper probe --raw " + freeName(dir))
	case err != nil:
		return nil, apierr.Wrap(err, apierr.InvalidArgument, "make a recording").WithNext("loopkeeper probe --raw FOLDER  # a folder that you may write")
	}
	return r, nil
}

// freeName is a name beside dir that nothing has.
func freeName(dir string) string {
	for n := 2; ; n++ {
		name := fmt.Sprintf("%s-%d", filepath.Clean(dir), n)
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) || n == 99 {
			return name
		}
	}
}

func openRecording(dir string) (source.Machine, error) {
	m, err := source.Open(dir)
	switch {
	case err == nil:
		return m, nil
	case errors.Is(err, source.ErrLaterRecording):
		return m, apierr.Wrap(err, apierr.InvalidArgument, "probe a recording").WithNext("update loopkeeper: a later one made this recording")
	case errors.Is(err, source.ErrNoRecording):
		return m, apierr.Wrap(err, apierr.InvalidArgument, "probe a recording").
			WithNext("name the folder that holds index.json", "loopkeeper probe --raw FOLDER  # makes one")
	default:
		return m, apierr.Wrap(err, apierr.NotFound, "probe a recording").WithNext("loopkeeper probe --raw FOLDER  # makes one")
	}
}
