package hosts

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// namespace is a network of its own that lives as long as the process that holds it. That ends when its input does, so
// nothing is left over even when the tests are killed.
type namespace struct {
	holder *exec.Cmd
	input  io.Closer
}

func newNamespace(t *testing.T) *namespace {
	t.Helper()
	holder := exec.Command("cat")
	holder.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Setpgid: true}
	input, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	n := &namespace{holder, input}
	t.Cleanup(func() { n.end(t) })
	n.ip(t, "link set lo up")
	return n
}

// end gives the namespace back. Whatever still runs in it was left behind by a program that has stopped.
func (n *namespace) end(t *testing.T) {
	defer func() {
		for _, p := range n.processes() {
			_ = syscall.Kill(p.id, syscall.SIGKILL) // an error means that it has ended
		}
		_ = n.input.Close()
		_ = n.holder.Wait()
	}()
	eventually(t, 10*time.Second, "no process is left behind", func() (bool, any) {
		left := n.processes()
		return len(left) == 0, left
	})
}

type process struct {
	id   int
	name string
}

// processes are those in the namespace, without its holder.
func (n *namespace) processes() []process {
	inside, err := os.Readlink(n.path())
	if err != nil {
		return nil // the holder was killed
	}
	links, _ := filepath.Glob("/proc/[0-9]*/ns/net") // the pattern is right
	var found []process
	for _, link := range links {
		where, err := os.Readlink(link)
		id, _ := strconv.Atoi(strings.Split(link, "/")[2])
		if err != nil || where != inside || id == n.holder.Process.Pid {
			continue // an error means that it has ended
		}
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", id))
		found = append(found, process{id, strings.TrimSpace(string(name))})
	}
	return found
}

func (n *namespace) path() string { return fmt.Sprintf("/proc/%d/ns/net", n.holder.Process.Pid) }

// command is a program that will run in the namespace.
func (n *namespace) command(program string, args ...string) *exec.Cmd {
	return exec.Command("nsenter", append([]string{"--net=" + n.path(), "--", program}, args...)...)
}

// ip runs the command of that name in the namespace.
func (n *namespace) ip(t *testing.T, args string) {
	t.Helper()
	if out, err := n.command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v\n%s", args, err, out)
	}
}

// network is a house: a switch that hosts are plugged into. No cable leads out of it.
type network struct {
	middle *namespace
	ports  int
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	n := &network{middle: newNamespace(t)}
	n.middle.ip(t, "link add name switch0 type bridge")
	n.middle.ip(t, "link set switch0 up")
	return n
}

// host is a machine with a home folder and a cable to the switch.
type host struct {
	*namespace
	name, home string
	port       string // its end of the cable at the switch
	network    *network
}

// host adds a machine at the address, which is one of 10.77.0.0/24.
func (n *network) host(t *testing.T, name, address string) *host {
	t.Helper()
	n.ports++
	h := &host{namespace: newNamespace(t), name: name, home: t.TempDir(), port: "port" + strconv.Itoa(n.ports), network: n}
	n.middle.ip(t, fmt.Sprintf("link add name %s type veth peer name eth0 netns %d", h.port, h.holder.Process.Pid))
	n.middle.ip(t, fmt.Sprintf("link set %s master switch0 up", h.port))
	h.join(t, address)
	return h
}

// join configures the host's network as a machine that gets an address does. The route for multicast is what a default
// route is in a house that has a way out.
func (h *host) join(t *testing.T, address string) {
	t.Helper()
	h.ip(t, "link set eth0 up")
	h.ip(t, "addr add "+address+"/24 dev eth0")
	h.ip(t, "route add 224.0.0.0/4 dev eth0")
}

// leave takes the host off the network and gives its address back.
func (h *host) leave(t *testing.T) {
	t.Helper()
	h.ip(t, "link set eth0 down")
	h.ip(t, "addr flush dev eth0")
}

// unable says why there can be no hosts on this machine, nil when there can.
func unable() error {
	if os.Geteuid() != 0 {
		return errors.New("not root")
	}
	for _, program := range []string{"ip", "nsenter"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("no command %s", program)
		}
	}
	try := exec.Command("sh", "-c", "ip link add name switch0 type bridge && ip link add name port0 type veth peer name eth0")
	try.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if out, err := try.CombinedOutput(); err != nil {
		return fmt.Errorf("no network namespaces: %v %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
