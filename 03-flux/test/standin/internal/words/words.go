// Package words creates errors with the texts of a Flux broker, which begin with a capital letter if the C library's
// do.
package words

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
)

// Error is an error with the text of a broker's.
type Error string

func (e Error) Error() string { return string(e) }

// Errorf formats an error with the text of a broker's.
func Errorf(format string, args ...any) error { return Error(fmt.Sprintf(format, args...)) }

// System returns the text of the C library for a system error: "Permission denied", without the call and the file that
// Go adds.
func System(err error) error {
	if number, isNumber := errors.AsType[syscall.Errno](err); isNumber {
		text := number.Error()
		return Error(strings.ToUpper(text[:1]) + text[1:])
	}
	return err
}

// Signal returns the C library's name of a signal: "Segmentation fault".
func Signal(s syscall.Signal) string {
	text := s.String()
	return strings.ToUpper(text[:1]) + text[1:]
}
