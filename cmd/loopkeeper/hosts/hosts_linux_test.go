package hosts

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

// The devices differ, so that one machine is not taken for the other. Both hold the model.
const (
	kitchenMemory = 12 << 30
	denMemory     = 24 << 30
)

// ollama starts the host's stand-in where an Ollama is by default. An item takes a few tenths of a second.
func (h *host) ollama(t *testing.T, memory string) {
	t.Helper()
	h.start(t, "fakeollama", "--listen", "127.0.0.1:11434", "--name", h.name, "--memory", memory, "--models", "qwen3:8b", "--slots", "2",
		"--load-speed", "8GiB", "--prompt-rate", "6000", "--decode-rate", "150")
}

// lend starts the host's Ollama and its worker, open to the network.
func (h *host) lend(t *testing.T, memory string, args ...string) {
	t.Helper()
	h.ollama(t, memory)
	h.start(t, "loopkeeper", append([]string{"worker", "--insecure-lan", "-o", "jsonl"}, args...)...)
}

// twoMachines is the set-up of the README: `loopkeeper up` in the kitchen, `loopkeeper worker --insecure-lan` in the den.
func twoMachines(t *testing.T) (kitchen, den *host, found node, stop func()) {
	t.Helper()
	house := newNetwork(t)
	kitchen, den = house.host(t, "kitchen", "10.77.0.1"), house.host(t, "den", "10.77.0.2")
	kitchen.configure(t, settings)
	den.configure(t, settings)
	kitchen.ollama(t, "12GiB")
	stop = kitchen.start(t, "loopkeeper", "up", "-o", "jsonl")
	den.lend(t, "24GiB")
	return kitchen, den, kitchen.awaitNode(t, 20*time.Second, "den", "found", up), stop
}

func TestSecondMachineIsFoundAndDoesItsShare(t *testing.T) {
	needHosts(t)
	kitchen, den, found, stop := twoMachines(t)
	if found.FoundBy != "mdns" || found.Address != "10.77.0.2:7701" || found.device() != denMemory {
		t.Errorf("the den is %+v", found)
	}
	if own := kitchen.nodes(t).named(t, "kitchen"); !up(own) || own.FoundBy != "local" || own.device() != kitchenMemory {
		t.Errorf("the kitchen is %+v", own)
	}
	shared(t, kitchen)
	lost := cut(t, kitchen, den, found)

	stop()
	kitchen.start(t, "loopkeeper", "up", "-o", "jsonl")
	if still := kitchen.nodes(t).named(t, "den"); still.ID != found.ID || still.State != "lost" || !still.LastSeen.Equal(lost.LastSeen) {
		t.Errorf("after a restart of the coordinator what was %+v is %+v", lost, still)
	}
	den.join(t, "10.77.0.2")
	back := kitchen.awaitNode(t, 15*time.Second, "den", "back", up)
	if back.ID != found.ID || back.Address != found.Address {
		t.Errorf("it was %+v and came back as %+v", found, back)
	}
	shared(t, kitchen)
}

// shared runs a batch and wants it completed, with work done by both.
func shared(t *testing.T, kitchen *host) {
	t.Helper()
	var done struct {
		Run ran `json:"run"`
	}
	code := kitchen.ask(t, &done, kitchen.batch(t)...)
	here, _ := done.Run.on("kitchen")
	there, _ := done.Run.on("den")
	if code != 0 || done.Run.State != "completed" || here+there != batchItems || here == 0 || there == 0 {
		t.Fatalf("exit code %d, %+v", code, done.Run)
	}
	t.Logf("kitchen did %d, den %d of %d", here, there, batchItems)
}

// cut takes the den off the network in the middle of a batch. It is lost, and the kitchen does what it had begun.
func cut(t *testing.T, kitchen, den *host, found node) (lost node) {
	t.Helper()
	var begun struct {
		Run struct{ ID string }
	}
	if code := kitchen.ask(t, &begun, append(kitchen.batch(t), "--detach")...); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	eventually(t, 20*time.Second, "the den has done some and is at work", func() (bool, any) {
		r := kitchen.show(t, begun.Run.ID)
		items, _ := r.on("den")
		return items > 0 && r.working("den"), r
	})
	den.leave(t)
	cutAt := time.Now()
	lost = kitchen.awaitNode(t, 15*time.Second, "den", "lost", func(n node) bool { return n.State == "lost" })
	if lost.ID != found.ID || lost.Problem == "" || lost.LastSeen.Before(found.LastSeen) || lost.LastSeen.After(cutAt.Add(time.Second)) {
		t.Errorf("cut off at %s it is %+v", cutAt, lost)
	}
	var r ran
	eventually(t, 30*time.Second, "the run has ended", func() (bool, any) {
		r = kitchen.show(t, begun.Run.ID)
		return r.State != "running" && r.State != "waiting", r
	})
	here, _ := r.on("kitchen")
	there, failed := r.on("den")
	if r.State != "completed" || r.Items.Succeeded != batchItems || here+there != batchItems || failed == 0 {
		t.Errorf("with %d tries lost in the den the run is %+v", failed, r)
	}
	if all := kitchen.nodes(t); len(all.Candidates) != 0 {
		t.Errorf("a lost node is told about as a stranger, too: %v", all.Candidates)
	}
	t.Logf("kitchen did %d, den %d of %d and lost %d tries", here, there, batchItems, failed)
	return lost
}

func TestMachineIsFoundAtItsNewAddress(t *testing.T) {
	needHosts(t)
	kitchen, den, found, _ := twoMachines(t)
	den.ip(t, "addr flush dev eth0")
	den.join(t, "10.77.0.22")
	moved := kitchen.awaitNode(t, 50*time.Second, "den", "at its new address", func(n node) bool { return up(n) && n.Address == "10.77.0.22:7701" })
	if moved.ID != found.ID || moved.FoundBy != "mdns" {
		t.Errorf("it was %+v and is %+v", found, moved)
	}
	if all := kitchen.nodes(t); len(all.Nodes) != 2 || len(all.Candidates) != 0 {
		t.Errorf("something is left of the old address: %+v", all)
	}
}

func TestMachineOfAnotherFleetIsNotTaken(t *testing.T) {
	needHosts(t)
	house := newNetwork(t)
	kitchen, den, attic := house.host(t, "kitchen", "10.77.0.1"), house.host(t, "den", "10.77.0.2"), house.host(t, "attic", "10.77.0.3")
	for _, h := range []*host{kitchen, den, attic} {
		h.configure(t, settings)
	}
	attic.lend(t, "24GiB", "--fleet", "lab")
	den.lend(t, "24GiB")
	kitchen.start(t, "loopkeeper", "up", "--no-worker", "--worker", "10.77.0.3:7701", "-o", "jsonl")
	kitchen.awaitNode(t, 20*time.Second, "den", "found", up)
	announced := regexp.MustCompile(`(?m)^attic-[0-9a-f]+: belongs to fleet "lab"`)
	asked := regexp.MustCompile(`(?m)^10\.77\.0\.3:7701: attic belongs to fleet "lab"`)
	eventually(t, 10*time.Second, "the candidates say why", func() (bool, any) {
		all := kitchen.nodes(t)
		reasons := strings.Join(all.Candidates, "\n")
		return announced.MatchString(reasons) && asked.MatchString(reasons), all
	})
	if all := kitchen.nodes(t); len(all.Nodes) != 1 {
		t.Errorf("nodes are %+v", all)
	}
}

func TestMachinesAtGivenAddressesNeedNoMulticast(t *testing.T) {
	needHosts(t)
	house := newNetwork(t)
	kitchen, den, attic := house.host(t, "kitchen", "10.77.0.1"), house.host(t, "den", "10.77.0.2"), house.host(t, "attic", "10.77.0.3")
	for _, h := range []*host{kitchen, den, attic} {
		h.ip(t, "route del 224.0.0.0/4 dev eth0")
	}
	off := settings + "  mdns: false\n"
	den.configure(t, off)
	attic.configure(t, off)
	kitchen.configure(t, strings.Replace(off, "coordinator:\n", "coordinator:\n  workers: [\"10.77.0.2:7701\"]\n", 1))
	den.lend(t, "24GiB")
	attic.lend(t, "12GiB")

	stop := kitchen.start(t, "loopkeeper", "up", "--no-worker", "-o", "jsonl")
	static := func(n node) bool { return up(n) && n.FoundBy == "static" }
	kitchen.awaitNode(t, 20*time.Second, "den", "up by the settings", static)
	stop()

	kitchen.start(t, "loopkeeper", "up", "--no-worker", "--worker", "10.77.0.3:7701", "-o", "jsonl")
	kitchen.awaitNode(t, 20*time.Second, "attic", "up by the flag", static)
}
