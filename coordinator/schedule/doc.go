// Package schedule decides when a workflow is started without anybody asking at that moment: at a time, at an interval, or when files of
// a folder have changed. Decide is pure; a Runner does what it says, persists first and then acts, so that no firing happens twice.
package schedule
