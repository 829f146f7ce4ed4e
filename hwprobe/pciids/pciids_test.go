package pciids

import (
	"testing"

	"github.com/loopkeeper/loopkeeper/hwprobe"
)

// The ids are of machines in ../testdata and of cards whose names cannot be told from a processor's ("Arc", "Radeon").
func TestProcessorsGraphicsAndCardsAreTold(t *testing.T) {
	processor, card, unknown := hwprobe.Known(true), hwprobe.Known(false), hwprobe.Flag{}
	for _, c := range []struct {
		what           string
		vendor, device uint16
		want           hwprobe.Flag
	}{
		{"Radeon 8060S, Strix Halo", AMD, 0x1586, processor},
		{"Radeon 860M, Krackan Point", AMD, 0x1114, processor},
		{"Radeon 780M, Phoenix", AMD, 0x15bf, processor},
		{"Radeon Graphics, Cezanne", AMD, 0x1638, processor},
		{"Radeon Graphics of a Ryzen 9000 beside a card", AMD, 0x13c0, processor},
		{"Instinct MI300A", AMD, 0x74a0, processor},
		{"Instinct MI300X", AMD, 0x74a1, card},
		{"Radeon RX 7900 XTX", AMD, 0x744c, card},
		{"Radeon RX 9070 XT", AMD, 0x7550, card},
		{"Instinct MI50, named AMD Radeon Graphics", AMD, 0x66a1, card},
		{"Arc 140V, Lunar Lake", Intel, 0x64a0, processor},
		{"UHD Graphics, Comet Lake", Intel, 0x9bc4, processor},
		{"UHD Graphics 630", Intel, 0x3e9b, processor},
		{"UHD Graphics 770", Intel, 0x4680, processor},
		{"Arc A770", Intel, 0x56a0, card},
		{"Arc A380", Intel, 0x56a5, card},
		{"Arc B580", Intel, 0xe20b, card},
		{"Iris Xe MAX", Intel, 0x4905, card},
		{"a family that is not listed", AMD, 0x8001, unknown},
		{"a family that is not listed", Intel, 0xf000, unknown},
		{"NVIDIA's say nothing: unified ones are told by the driver", NVIDIA, 0x2684, unknown},
		{"another vendor", 0x1414, 0x008c, unknown},
	} {
		if got := Integrated(c.vendor, c.device); got != c.want {
			t.Errorf("%s (%04x:%04x): %v, want %v", c.what, c.vendor, c.device, got, c.want)
		}
	}
}

func TestNoFamilyIsBothKinds(t *testing.T) {
	for _, pair := range [][2]map[uint16]bool{{amdProcessors, amdCards}, {intelProcessors, intelCards}} {
		for high := range pair[0] {
			if pair[1][high] {
				t.Errorf("%#02x is a processor's and a card's", high)
			}
		}
	}
}
