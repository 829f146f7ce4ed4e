package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/loopkeeper/loopkeeper/worker/ollama/ollamatest"
)

// drain is how long requests under way may take once the program is told to stop.
const drain = 2 * time.Second

// run serves until ctx ends. The first line on stdout is the address it listens on.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	listen, cfg, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	fake, err := ollamatest.Open(cfg)
	if err != nil {
		return err
	}
	defer fake.Close()
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("listening on %s: %w; choose another port with --listen", listen, err)
	}
	fmt.Fprintln(stdout, l.Addr())
	return serve(ctx, l, fake)
}

// serve answers requests until ctx ends, then lets those under way finish for a moment.
func serve(ctx context.Context, l net.Listener, h http.Handler) error {
	web := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1) // the one result of Serve
	go func() { served <- web.Serve(l) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	if web.Shutdown(deadline) != nil {
		web.Close()
	}
	<-served
	return nil
}

// parse reads the flags; they win over the file.
func parse(args []string, stderr io.Writer) (listen string, cfg ollamatest.Config, err error) {
	fs := flag.NewFlagSet("fakeollama", flag.ContinueOnError)
	fs.SetOutput(stderr)
	var file, models string
	var flags ollamatest.Config
	fs.StringVar(&file, "config", "", "YAML `file`, see example.yaml")
	fs.StringVar(&listen, "listen", "127.0.0.1:11434", "`address` to listen on; port 0 takes a free one")
	fs.StringVar(&flags.Name, "name", "", "name shown by /control/info")
	fs.StringVar(&flags.Version, "version", "", "version to imitate, default "+ollamatest.DefaultVersion)
	fs.StringVar(&models, "models", "", "presets to install, with commas: "+strings.Join(ollamatest.PresetNames(), ", "))
	fs.Func("memory", "device memory as `bytes`, such as 8GiB (default 24GiB)", size(&flags.Memory))
	fs.Func("load-speed", "`bytes` per second a load reads, such as 2GiB; 0 = at once (default 0)", size(&flags.LoadSpeed))
	fs.Float64Var(&flags.PromptRate, "prompt-rate", 0, "prompt tokens per second; 0 = at once, and the rates that answers report mean nothing (default 0)")
	fs.Float64Var(&flags.DecodeRate, "decode-rate", 0, "generated tokens per second and slot; 0 = at once, and the rates that answers report mean nothing (default 0)")
	fs.IntVar(&flags.Slots, "slots", 0, "concurrent generations per model (default 1)")
	fs.Uint64Var(&flags.Seed, "seed", 0, "seed of the faults")
	if err := fs.Parse(args); err != nil {
		return "", cfg, err
	}
	if fs.NArg() > 0 {
		return "", cfg, fmt.Errorf("argument %q is not understood; all settings are flags", fs.Arg(0))
	}
	if file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			return "", cfg, err
		}
		if cfg, err = ollamatest.ParseConfig(file, data); err != nil {
			return "", cfg, err
		}
	}
	fs.Visit(func(f *flag.Flag) { override(&cfg, flags, models, f.Name) })
	return listen, cfg, nil
}

// size reads a flag into b. A flag made by TextVar would print a default of its own beside the one in its text.
func size(b *ollamatest.Bytes) func(string) error {
	return func(text string) error { return b.UnmarshalText([]byte(text)) }
}

// override takes over the flag of that name.
func override(cfg *ollamatest.Config, flags ollamatest.Config, models, name string) {
	switch name {
	case "name":
		cfg.Name = flags.Name
	case "version":
		cfg.Version = flags.Version
	case "memory":
		cfg.Memory = flags.Memory
	case "load-speed":
		cfg.LoadSpeed = flags.LoadSpeed
	case "prompt-rate":
		cfg.PromptRate = flags.PromptRate
	case "decode-rate":
		cfg.DecodeRate = flags.DecodeRate
	case "slots":
		cfg.Slots = flags.Slots
	case "seed":
		cfg.Seed = flags.Seed
	case "models":
		cfg.Models = nil
		for _, m := range strings.Split(models, ",") {
			cfg.Models = append(cfg.Models, ollamatest.Model{Name: strings.TrimSpace(m), Preset: strings.TrimSpace(m)})
		}
	}
}
