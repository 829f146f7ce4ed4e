package source

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// behaviour names the environment variable that turns this test binary into a badly behaved vendor tool.
const behaviour = "HWPROBE_TEST_TOOL"

// noteFile names the environment variable with the file where a tool notes its child's process id.
const noteFile = "HWPROBE_TEST_NOTE"

func TestMain(m *testing.M) {
	if how := os.Getenv(behaviour); how != "" {
		os.Exit(misbehave(how))
	}
	goleak.VerifyTestMain(m)
}

func misbehave(how string) int {
	switch how {
	case "hang":
		fmt.Println("half a line")
		time.Sleep(time.Hour)
	case "flood":
		for line := strings.Repeat("x", 1<<16); ; {
			fmt.Println(line)
		}
	case "orphan": // a child keeps our output open after we have ended
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), behaviour+"=linger")
		child.Stdout = os.Stdout
		if err := child.Start(); err != nil || !note(child) {
			return 1
		}
		fmt.Println("done")
	case "wrap": // a script that waits for the tool that it runs
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), behaviour+"=linger")
		if err := child.Start(); err != nil || !note(child) || child.Wait() != nil {
			return 1
		}
	case "linger":
		time.Sleep(20 * time.Second)
	case "exit9":
		fmt.Println("to stdout")
		fmt.Fprintln(os.Stderr, "to stderr")
		return 9
	case "half":
		fmt.Print("uuid, name, pci.bus_id, driver_version, memory.total [MiB], memory.fr")
	case "locale":
		fmt.Print(os.Getenv("LC_ALL"))
	case "crash":
		self, err := os.FindProcess(os.Getpid())
		if err != nil || self.Kill() != nil {
			return 1
		}
		time.Sleep(time.Minute)
	}
	return 0
}

func note(child *exec.Cmd) bool {
	at := os.Getenv(noteFile)
	return at == "" || os.WriteFile(at, []byte(strconv.Itoa(child.Process.Pid)), 0o600) == nil
}
