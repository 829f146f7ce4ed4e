// Package nvidia finds NVIDIA's devices: by nvidia-smi, and by what the kernel shows of cards that nvidia-smi does not answer
// for, or that it would wake. Nothing is told by a device's name or position: cards of one name come with different memory,
// and two listings order them differently.
package nvidia
