package probe

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// behaviour names the environment variable that turns this test binary into a badly behaved vendor tool.
const behaviour = "HWPROBE_TEST_TOOL"

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
	case "exit9":
		fmt.Println("to stdout")
		fmt.Fprintln(os.Stderr, "to stderr")
		return 9
	case "idle": // the one that behaves
		text, err := os.ReadFile("../testdata/nvidia-smi-rtx4080s-linux-595.query-idle.csv")
		if err != nil {
			return 1
		}
		fmt.Print(string(text))
	case "half":
		fmt.Print("uuid, name, pci.bus_id, driver_version, memory.total [MiB], memory.fr")
	case "crash":
		self, err := os.FindProcess(os.Getpid())
		if err != nil || self.Kill() != nil {
			return 1
		}
		time.Sleep(time.Minute)
	}
	return 0
}
