package script

import (
	"context"
	"os"
	"testing"
)

// A process that was started ahead is the next script's, and one that no script took ends with its host.
func TestAHostStartsAProcessAhead(t *testing.T) {
	h := NewChildHost(ChildOptions{Command: []string{os.Args[0], childArgument}})
	h.Warm()
	h.warming.Wait()
	ahead := <-h.spare
	h.spare <- ahead
	r := started(t, h, `export default () => 1 + 1`, `{}`)
	if r.last.End == nil || string(r.last.End.Value) != `2` {
		t.Errorf("end = %+v", r.last.End)
	}
	if r.session != Session(ahead) {
		t.Error("the script did not run in the process that was started ahead")
	}

	h.Warm()
	h.Warm() // one is enough
	h.warming.Wait()
	idle := <-h.spare
	h.spare <- idle
	h.Close()
	if idle.cmd.ProcessState == nil {
		t.Error("a process that no script took outlived its host")
	}
	if _, err := idle.Deliver(context.Background(), Delivery{}); err == nil {
		t.Error("it answered")
	}
	none := NewChildHost(ChildOptions{})
	none.Warm() // who needs it is told
	none.Close()
}
