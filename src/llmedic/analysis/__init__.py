"""Pure judgement: evidence and knowledge in, findings and verdict out. No I/O, no clock."""
