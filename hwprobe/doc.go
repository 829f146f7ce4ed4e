// Package hwprobe reports facts about one machine: its accelerators, the memory pools they draw on, its processor and
// memory, and what is wrong with them. It knows nothing of loopkeeper. A number that the machine does not tell is
// unknown, never zero, and every memory number names its source. Probe never fails: what could not be read becomes a
// warning with a next step.
package hwprobe
