package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/loopkeeper/loopkeeper/worker/ollama/ollamatest"
)

// asProgram makes the test binary behave as the program, so that a test can send it signals.
const asProgram = "FAKEOLLAMA_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

func info(t *testing.T, address string) ollamatest.Info {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + address + "/control/info")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var out ollamatest.Info
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestFirstLineIsTheAddress(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, []string{"--listen", "127.0.0.1:0", "--name", "left", "--memory", "8GiB", "--models", "qwen3:8b, llama3.2:3b"}, w, io.Discard)
	}()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address := strings.TrimSpace(line)
	if got := info(t, address); !got.Simulated || got.Name != "left" || got.MemoryBytes != 8<<30 {
		t.Errorf("%+v", got)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("after the end: %v", err)
	}
	if conn, err := net.Dial("tcp", address); err == nil {
		conn.Close()
		t.Error("it still listens")
	}
}

func TestSignalsStopItCleanly(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows cannot send a signal to another process")
	}
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		cmd := exec.Command(os.Args[0], "--listen", "127.0.0.1:0")
		cmd.Env = append(os.Environ(), asProgram+"=1")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		info(t, strings.TrimSpace(line))
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil || stderr.Len() > 0 {
			t.Errorf("%v: %v, stderr %q", signal, err, stderr.String())
		}
	}
}

func TestFlagsWinOverTheFile(t *testing.T) {
	listen, cfg, err := parse([]string{"--config", "example.yaml", "--memory", "6GiB", "--decode-rate", "9"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if listen != "127.0.0.1:11434" || cfg.Memory != 6<<30 || cfg.DecodeRate != 9 || cfg.Name != "left" || len(cfg.Models) == 0 {
		t.Errorf("%s %+v", listen, cfg)
	}
}

func TestMistakesAreNamed(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("name: a\nmemroy: 1GiB\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--config", bad}, `bad.yaml:[2:1] unknown field "memroy"`},
		{[]string{"--config", "none.yaml"}, "none.yaml"},
		{[]string{"--models", "gpt-9"}, `models[0]: preset: "gpt-9" is unknown; there are llama3.1:8b,`},
		{[]string{"--memory", "big"}, `invalid value "big" for flag -memory: "big" is not a size`},
		{[]string{"8GiB"}, `"8GiB" is not understood`},
		{[]string{"--listen", taken.Addr().String()}, "choose another port with --listen"},
	} {
		err := run(t.Context(), c.args, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v does not say %q", c.args, err, c.want)
		}
	}
}

func TestHelpNamesEachDefaultOnce(t *testing.T) {
	var help bytes.Buffer
	if err := run(t.Context(), []string{"--help"}, io.Discard, &help); err != nil {
		t.Fatal(err)
	}
	// A flag is a line with its name and one or more with its text.
	for _, flag := range strings.Split(help.String(), "\n  -")[1:] {
		if strings.Count(flag, "default") > 1 {
			t.Errorf("-%s", flag)
		}
	}
	if !strings.Contains(help.String(), "(default 24GiB)") {
		t.Errorf("the memory's default is missing in %s", help.String())
	}
}
