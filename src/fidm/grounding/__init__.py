"""From words to moves: segments, route programs, the grounders that write them, and their replay."""
