package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/cli"
	"github.com/loopkeeper/loopkeeper/worker/ollama/ggufheader"
	"github.com/loopkeeper/loopkeeper/worker/ollama/ollamatest"
)

// The test binary is loopkeeper, and the stand-in that the demo looks for beside it.
func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "4") // unless go test is told another number: a story waits for daemons for half of its time
	testscript.Main(m, map[string]func(){
		"loopkeeper": func() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
		"fakeollama": fakeollama,
		"latin1": func() { // loopkeeper, with arguments as a machine without UTF-8 writes them: E stands for an e with an accent
			for i, arg := range os.Args {
				os.Args[i] = strings.ReplaceAll(arg, "cafE", "caf\xe9")
			}
			os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
		},
	})
}

// TestStories runs testdata/script: one file per story that a user could tell.
func TestStories(t *testing.T) {
	quick := quickProgram(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("LOOPKEEPER_DATA_DIR", filepath.Join(e.WorkDir, "data"))
			e.Setenv("XDG_CONFIG_HOME", filepath.Join(e.WorkDir, "config"))
			e.Setenv("LOOPKEEPER_MDNS", "false")
			e.Setenv("OLLAMA_HOST", "127.0.0.1:1") // nobody listens there
			e.Setenv("LANG", "C")
			choose(e, quick)
			recordings, err := filepath.Abs("../../../hwprobe/probe/testdata")
			e.Setenv("RECORDINGS", recordings)
			e.Values[daemons{}] = map[string]*daemon{}
			return err
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"ollama": startOllama, "start": startDaemon, "halt": stopDaemon, "exits": exits, "occupy": occupy, "newer": newer, "interrupt": interrupt, "word": word,
			"large": large, "misnamed": misnamed, "within": within, "eventually": eventually, "closed": closed, "header": header, "gone": gone, "expand": expand, "tamper": tamper, "picture": picture, "shown": shown,
		},
	})
}

// startOllama is `ollama NAME [CONFIG]`: it starts a stand-in in this process and puts its URL into the variable NAME.
func startOllama(ts *testscript.TestScript, neg bool, args []string) {
	var c ollamatest.Config
	if len(args) == 2 {
		var err error
		c, err = ollamatest.ParseConfig(args[1], []byte(ts.ReadFile(args[1])))
		ts.Check(err)
	}
	fake, err := ollamatest.Open(c)
	ts.Check(err)
	server := httptest.NewServer(fake)
	ts.Defer(func() {
		server.CloseClientConnections()
		server.Close()
		fake.Close()
	})
	ts.Setenv(args[0], server.URL)
}

type daemons struct{}

type daemon struct {
	cmd    *exec.Cmd
	stderr bytes.Buffer
}

// startDaemon is `start NAME ARG...`: it starts `loopkeeper ARG... -o jsonl`, waits until it says that it is ready, and puts
// its address into the variable NAME.
func startDaemon(ts *testscript.TestScript, neg bool, args []string) {
	program, err := exec.LookPath("loopkeeper")
	ts.Check(err)
	d := &daemon{cmd: exec.Command(program, append(args[1:], "-o", "jsonl")...)}
	d.cmd.Dir, d.cmd.Env, d.cmd.Stderr = ts.MkAbs("."), environment(ts), &d.stderr
	out, err := d.cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(d.cmd.Start())
	all := ts.Value(daemons{}).(map[string]*daemon)
	all[args[0]] = d
	ts.Defer(func() {
		if d.cmd.ProcessState == nil {
			_ = d.cmd.Process.Kill()
			_ = d.cmd.Wait()
		}
		ts.Logf("%s stderr: %s", args[0], d.stderr.String())
	})
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		_ = d.cmd.Wait()
		ts.Fatalf("%s did not start: %v\n%s", args[0], err, d.stderr.String())
	}
	var ready struct{ Address string }
	ts.Check(json.Unmarshal(line, &ready))
	ts.Setenv(args[0], ready.Address)
}

// environment is the script's, as a process gets it.
func environment(ts *testscript.TestScript) []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "LANG", "LOOPKEEPER_DATA_DIR", "LOOPKEEPER_MDNS", "XDG_CONFIG_HOME", "OLLAMA_HOST"} {
		env = append(env, name+"="+ts.Getenv(name))
	}
	return env
}

// stopDaemon is `halt NAME`, or `halt -kill NAME`. A daemon that is asked to stop must do so without an error.
func stopDaemon(ts *testscript.TestScript, neg bool, args []string) {
	kill := args[0] == "-kill"
	d := ts.Value(daemons{}).(map[string]*daemon)[args[len(args)-1]]
	if kill {
		ts.Check(d.cmd.Process.Kill())
		_ = d.cmd.Wait()
		return
	}
	ts.Check(d.cmd.Process.Signal(syscall.SIGTERM))
	if err := d.cmd.Wait(); err != nil {
		ts.Fatalf("it did not stop cleanly: %v\n%s", err, d.stderr.String())
	}
}

// exits is `exits CODE PROGRAM ARG...`.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// within is `within DURATION PROGRAM ARG...`: the program must succeed in that time.
func within(ts *testscript.TestScript, neg bool, args []string) {
	limit, err := time.ParseDuration(args[0])
	ts.Check(err)
	begin := time.Now()
	ts.Check(ts.Exec(args[1], args[2:]...))
	if took := time.Since(begin); took > limit {
		ts.Fatalf("it took %s, want at most %s", took, limit)
	}
}

// occupy is `occupy NAME`: it listens on a free port and puts the address into the variable NAME.
func occupy(ts *testscript.TestScript, neg bool, args []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { l.Close() })
	ts.Setenv(args[0], l.Addr().String())
}

// newer is `newer FILE`: it makes a ledger one that a later loopkeeper wrote.
func newer(ts *testscript.TestScript, neg bool, args []string) {
	db, err := sql.Open("sqlite", ts.MkAbs(args[0]))
	ts.Check(err)
	defer db.Close()
	_, err = db.Exec("PRAGMA user_version = 1000")
	ts.Check(err)
}

// interrupt is `interrupt CODE WORD PROGRAM ARG...`: it runs the program, sends it Ctrl-C once what it says matches WORD, and
// wants that exit code. What it said is then in the file `interrupted`.
func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	args = args[1:]
	program, err := exec.LookPath(args[1])
	ts.Check(err)
	r, w, err := os.Pipe()
	ts.Check(err)
	cmd := exec.Command(program, args[2:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = ts.MkAbs("."), environment(ts), w, w
	ts.Check(cmd.Start())
	ts.Check(w.Close())
	var text strings.Builder
	begins := regexp.MustCompile(args[0])
	sent := false
	for lines := bufio.NewScanner(r); lines.Scan(); {
		text.WriteString(lines.Text() + "\n")
		if !sent && begins.MatchString(lines.Text()) {
			sent = true
			ts.Check(cmd.Process.Signal(os.Interrupt))
		}
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != want {
		ts.Fatalf("exit code %d, want %d:\n%s", code, want, text.String())
	}
	ts.Check(os.WriteFile(ts.MkAbs("interrupted"), []byte(text.String()), 0o600))
}

// word is `word NAME`: it puts what was printed last, such as the id of a run, into the variable NAME.
func word(ts *testscript.TestScript, neg bool, args []string) {
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}

// large is `large FILE`: it makes a file of a byte more than a document may have.
func large(ts *testscript.TestScript, neg bool, args []string) {
	ts.Check(os.Truncate(create(ts, args[0]), 16<<20+1))
}

// misnamed is `misnamed FOLDER`: it puts a file there whose name is Latin-1.
func misnamed(ts *testscript.TestScript, neg bool, args []string) {
	ts.Check(os.WriteFile(create(ts, args[0]+"/caf\xe9.md"), []byte("Coffee."), 0o600))
}

// eventually is `eventually REGEXP PROGRAM ARG...`: it runs the program until its stdout matches.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	var err error
	want := regexp.MustCompile(args[0])
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); <-again.C {
		if err = ts.Exec(args[1], args[2:]...); err == nil && want.MatchString(ts.ReadFile("stdout")) {
			return
		}
	}
	ts.Fatalf("it never printed %s and ended well; the last end: %v", args[0], err)
}

// closed is `closed FILE NODE`: it writes settings whose hours of the node begin in three days.
func closed(ts *testscript.TestScript, neg bool, args []string) {
	day := time.Now().UTC().AddDate(0, 0, 3).Weekday()
	text := fmt.Sprintf("nodes:\n  %s: {hours: [\"%s 00:00-24:00\"], zone: Etc/UTC}\n", args[1], day)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}

// header is `header FILE`: it writes the header of a model file in GGUF format, Llama 3.1 8B, without its tensors.
func header(ts *testscript.TestScript, neg bool, args []string) {
	raw, _ := ggufheader.Encode(ggufheader.Llama8B.Keys(), ggufheader.Llama8B.Tensors())
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), raw, 0o600))
}

func create(ts *testscript.TestScript, name string) string {
	f, err := os.Create(ts.MkAbs(name))
	ts.Check(err)
	ts.Check(f.Close())
	return f.Name()
}

// fakeollama is the part of cmd/fakeollama that the demo uses; that command has tests of its own.
func fakeollama() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var c ollamatest.Config
	var models string
	listen := flag.String("listen", "", "")
	flag.StringVar(&c.Name, "name", "", "")
	flag.StringVar(&models, "models", "", "")
	flag.TextVar(&c.Memory, "memory", ollamatest.Bytes(0), "")
	flag.TextVar(&c.LoadSpeed, "load-speed", ollamatest.Bytes(0), "")
	flag.Float64Var(&c.PromptRate, "prompt-rate", 0, "")
	flag.Float64Var(&c.DecodeRate, "decode-rate", 0, "")
	flag.IntVar(&c.Slots, "slots", 0, "")
	flag.Parse()
	c.Models = []ollamatest.Model{{Name: models, Preset: models}}
	c.PromptRate, c.DecodeRate = 0, 10*c.DecodeRate // a test need not be watched
	fake, err := ollamatest.Open(c)
	if err != nil {
		panic(err)
	}
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		panic(err)
	}
	server := httptest.NewUnstartedServer(fake)
	server.Listener.Close()
	server.Listener = l
	server.Start()
	fmt.Println(l.Addr())
	<-ctx.Done()
}
