package broker

import "encoding/binary"

// z85Alphabet has the digits of base 85, from 0 to 84.
const z85Alphabet = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"

// z85 writes data, four bytes at a time as a big-endian number, in five digits each: ZeroMQ RFC 32. The length of
// data is a multiple of four.
func z85(data []byte) string {
	text := make([]byte, 0, len(data)/4*5)
	for ; len(data) > 0; data = data[4:] {
		number := binary.BigEndian.Uint32(data)
		for _, divisor := range []uint32{85 * 85 * 85 * 85, 85 * 85 * 85, 85 * 85, 85, 1} {
			text = append(text, z85Alphabet[number/divisor%85])
		}
	}
	return string(text)
}
