package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

func newDemo(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "demo", Short: "Run a batch and a plan over two workers here, then stop them", Args: cobra.NoArgs,
		Long: "Start a coordinator and two workers on this machine, let them find each other, run a batch over the Markdown and Go files\n" +
			"of the working directory and a plan of five steps, show the results, and stop everything again.\n\n" +
			"It uses the Ollama at OLLAMA_HOST or 127.0.0.1:11434 when that has a usable model, else two stand-ins; then every node,\n" +
			"result and summary line says \"simulated\".",
		Example: "  make demo",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.demo(cmd.Context()) },
	}
}

// demo tells its story on one stream, so that its lines stay in order.
type demo struct {
	*app
	world *world
	began time.Time
	quick bool // stand-ins answer fast; a real model on a small machine may not
	model string
}

func (a *app) demo(ctx context.Context) error {
	teller := *a
	if !a.json() {
		teller.stderr = a.stdout
	}
	teller.leave = true
	d := &demo{app: &teller, began: time.Now()}
	files, err := demoFiles(ctx, ".")
	if err != nil {
		return err
	}
	if d.world, err = newWorld(d.app); err != nil {
		return err
	}
	err = d.play(ctx, files)
	if stopped := d.world.stop(); err == nil {
		err = stopped
	}
	d.say("\ndemo: stopped everything it had started; took %s", ui.Duration(time.Since(d.began)))
	if err == nil && !d.json() {
		d.next("loopkeeper up  # and then, in another terminal, on your own files", "loopkeeper map --model MODEL --prompt 'Summarise in three points: {{item}}' --out out.jsonl 'docs/*.md'")
	}
	return err
}

func (d *demo) say(format string, args ...any) {
	if !d.json() {
		d.note(format, args...)
	}
}

// play starts the world, runs both jobs and shows what became of them.
func (d *demo) play(ctx context.Context, files []input) error {
	if err := d.open(ctx); err != nil {
		return err
	}
	c, err := d.connect(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	if err := d.meet(ctx, c); err != nil {
		return err
	}
	batch, err := d.batch(ctx, c, files)
	if err != nil {
		return err
	}
	plan, err := d.steps(ctx, c)
	if err != nil {
		return err
	}
	if d.json() {
		return firstError(d.printJSON(map[string]any{"batch": ui.Plain(batch), "plan": ui.Plain(plan), "simulated": batch.GetSimulated(),
			"seconds": time.Since(d.began).Seconds()}), worse(ended(batch), ended(plan)))
	}
	return worse(ended(batch), ended(plan))
}

// worse is the outcome of two runs that belong together.
func worse(a, b error) error {
	if b != nil {
		return b
	}
	return a
}

// open finds an Ollama, starts the two workers and then the coordinator, in the way in which it can find them.
func (d *demo) open(ctx context.Context) error {
	urls, why, err := d.world.ollama(ctx)
	if err != nil {
		return err
	}
	d.model, d.quick = urls.model, urls.simulated
	d.say("demo: %s", why)
	if err := d.world.startWorkers(ctx, urls); err != nil {
		return err
	}
	how, err := d.world.startCoordinator(ctx)
	if err != nil {
		return err
	}
	d.say("demo: a coordinator and two workers run on this machine, fleet %s; %s", d.world.fleet, how)
	d.flags.server, d.config.DataDir = d.world.server, d.world.dir
	return nil
}

// meetTime is how long the workers may take to be known.
const meetTime = 20 * time.Second

// meet waits until both workers are known, and shows them.
func (d *demo) meet(ctx context.Context, c *client) error {
	r, err := waitForNodes(ctx, c, len(d.world.workers), meetTime)
	if err != nil || d.json() {
		return err
	}
	return d.printText("\n" + ui.Nodes(d.style(d.stdout), r, c.info.GetDiscovery(), time.Now()))
}

// batch runs the built-in workflow map over files.
func (d *demo) batch(ctx context.Context, c *client, files []input) (*coordinatorv1.Run, error) {
	tokens := 320
	if !d.quick {
		files, tokens = files[:min(len(files), 10)], 200
	}
	d.say("\n== a batch: one sentence about each of %d files of this folder, model %s", len(files), d.model)
	bodies, err := d.bodies(ctx, c, files)
	if err != nil {
		return nil, err
	}
	in := map[string]any{"model": d.model, "prompt": "Say in one sentence what this file is for.\n\n{{item}}", "items": bodies, "max_tokens": tokens}
	held := &keptItems{}
	r, err := d.runToEnd(ctx, c, job{builtIn: "map", input: in, models: []string{d.model}}, held)
	if err != nil || d.json() {
		return r, err
	}
	d.say("\nThree of the results:")
	style := d.style(d.stdout)
	for i := range min(len(held.items), 3) {
		if err := d.printText(ui.ItemBlock(style, held.items[i*len(held.items)/3])); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// keptItems keeps the items of a batch.
type keptItems struct{ items []*coordinatorv1.Item }

func (h *keptItems) put(i *coordinatorv1.Item) error {
	h.items = append(h.items, i)
	return nil
}

func (h *keptItems) begin() error { return nil }
func (h *keptItems) flush() error { return nil }
func (h *keptItems) close() error { return nil }

// steps runs the built-in workflow plan.
func (d *demo) steps(ctx context.Context, c *client) (*coordinatorv1.Run, error) {
	d.say("\n== a plan of at most five steps, each judged before it counts, planner and model %s", d.model)
	in := map[string]any{"goal": "Write a short introduction to this project for a newcomer", "planner": d.model, "model": d.model, "max_steps": 5}
	if readme, err := readText("README.md"); err == nil {
		refs, err := d.bodies(ctx, c, []input{{key: "README.md", path: d.world.keep("README.md", readme)}})
		if err != nil {
			return nil, err
		}
		in["context"] = refs
	}
	r, err := d.runToEnd(ctx, c, job{builtIn: "plan", input: in, models: []string{d.model}}, nil)
	if err != nil || d.json() {
		return r, err
	}
	result, err := c.GetResult(ctx, &coordinatorv1.GetResultRequest{RunId: r.GetId()})
	if err != nil {
		return nil, err
	}
	outputs, err := d.outputs(ctx, c, result)
	if err != nil {
		return nil, err
	}
	for _, o := range outputs {
		if o.Name == "result" {
			d.say("\nThe result%s:", ui.Simulated(r.GetSimulated()))
			return r, d.printText(ui.Excerpt(ui.Value(o.Value), 12) + "\n")
		}
	}
	return r, nil
}

// runToEnd submits a job, shows it until it ends, and how it ended.
func (d *demo) runToEnd(ctx context.Context, c *client, j job, items sink) (*coordinatorv1.Run, error) {
	s, err := d.submit(ctx, c, j, false)
	if err != nil {
		return nil, err
	}
	var k *collector
	if items != nil {
		k = &collector{c: c, run: s.GetRunId(), sink: items}
	}
	r, err := d.follow(ctx, c, s.GetRunId(), k, destination{})
	if err != nil {
		return nil, err
	}
	d.say("%s", trimNewline(ui.Summary(d.style(d.stderr), r, time.Now(), exitCode(ended(r)))))
	return r, nil
}

const (
	demoItems    = 40       // of the batch, at most
	demoSmallest = 200      // bytes: less has nothing to say
	demoLargest  = 12 << 10 // bytes: more does not fit the context of a small model
)

// demoFiles picks Markdown and Go files below dir, evenly over the tree.
func demoFiles(ctx context.Context, dir string) ([]input, error) {
	var left leftOut
	paths, err := finder{ctx: ctx, left: &left}.folder(dir)
	if err != nil {
		return nil, err
	}
	var fit []string
	for _, p := range paths {
		ext := filepath.Ext(p)
		if ext != ".md" && ext != ".go" || strings.Contains(filepath.ToSlash(p), "testdata/") {
			continue
		}
		if info, err := os.Stat(p); err == nil && info.Size() >= demoSmallest && info.Size() <= demoLargest {
			fit = append(fit, p)
		}
	}
	if len(fit) < 3 {
		return nil, apierr.New(apierr.InvalidArgument, "the demo works on Markdown and Go files of the working directory, and finds %d", len(fit)).
			WithNext("make demo  # in a checkout of loopkeeper")
	}
	var out []input
	n := min(len(fit), demoItems)
	for i := range n {
		p := fit[i*len(fit)/n]
		out = append(out, input{key: filepath.ToSlash(p), path: p})
	}
	return out, nil
}

// excerptBytes is how much of a long text the plan of the demo is given.
const excerptBytes = 4 << 10

// keep writes the beginning of a text into the demo's folder and returns the path.
func (w *world) keep(name, text string) string {
	path := filepath.Join(w.dir, name)
	if len(text) > excerptBytes {
		text = strings.ToValidUTF8(text[:excerptBytes], "")
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return name
	}
	return path
}
