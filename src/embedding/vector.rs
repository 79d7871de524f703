//! A vector of a text, in a byte for each dimension.

/// A direction: whole numbers from -127 to 127, and what one of them is worth. The cosine of two differs from that of the
/// exact vectors by less than 0.01.
#[derive(Clone, Debug, PartialEq)]
pub struct Vector {
    /// The value of one unit, so that the vector has length 1.
    pub scale: f32,
    pub values: Box<[i8]>,
}

/// Bytes before the values in a stored vector.
const HEAD: usize = 4;

impl Vector {
    /// The direction of exact values; `None` if they have none: all nought, empty, or not finite.
    pub fn of(exact: &[f32]) -> Option<Self> {
        let length = exact.iter().map(|it| it * it).sum::<f32>().sqrt();
        let most = exact.iter().fold(0.0_f32, |most, it| most.max(it.abs()));
        if !length.is_normal() || !most.is_normal() {
            return None;
        }
        let unit = most / 127.0;
        let values = exact.iter().map(|it| (it / unit).round() as i8);
        Some(Self {
            scale: unit / length,
            values: values.collect(),
        })
    }

    /// The stored form: the scale (f32, little-endian), then a byte for each dimension.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.scale.to_le_bytes().to_vec();
        bytes.extend(self.values.iter().map(|it| it.to_ne_bytes()[0]));
        bytes
    }

    /// Reads the stored form of a vector with `dims` dimensions; `None` if it is none.
    pub fn read(bytes: &[u8], dims: usize) -> Option<Self> {
        let (head, values) = bytes.split_at_checked(HEAD)?;
        let scale = f32::from_le_bytes(head.try_into().ok()?);
        let is_sound = values.len() == dims && dims > 0 && scale.is_normal() && scale > 0.0;
        is_sound.then(|| Self {
            scale,
            values: values.iter().map(|it| i8::from_ne_bytes([*it])).collect(),
        })
    }
}

/// Vectors of one model by the hash of their text, in one piece of memory.
#[derive(Debug)]
pub struct Vectors<K> {
    places: rustc_hash::FxHashMap<K, u32>,
    /// In the order in which they came, as the vectors.
    keys: Vec<K>,
    scales: Vec<f32>,
    values: Vec<i8>,
    dims: usize,
}

impl<K> Default for Vectors<K> {
    fn default() -> Self {
        Self {
            places: rustc_hash::FxHashMap::default(),
            keys: Vec::new(),
            scales: Vec::new(),
            values: Vec::new(),
            dims: 0,
        }
    }
}

impl<K: Eq + std::hash::Hash + Copy> Vectors<K> {
    /// Adds a vector. One with other dimensions than the first is left out.
    pub fn insert(&mut self, key: K, vector: &Vector) {
        if self.scales.is_empty() {
            self.dims = vector.values.len();
        }
        if vector.values.len() != self.dims || self.places.contains_key(&key) {
            return;
        }
        self.places.insert(key, self.scales.len() as u32);
        self.keys.push(key);
        self.scales.push(vector.scale);
        if self.values.capacity() - self.values.len() < self.dims {
            // Doubling would take more than is ever needed.
            self.values.reserve_exact((self.values.len() / 8).max(1 << 16));
        }
        self.values.extend_from_slice(&vector.values);
    }

    /// True if there is a vector for the key.
    pub fn contains(&self, key: &K) -> bool {
        self.places.contains_key(key)
    }

    /// The cosine of a vector and that of a key; `None` if there is none, or it has other dimensions. `next` is where the key is
    /// likely to stand, 0 at first: keys that are asked for in the order in which they came are not looked up one by one.
    #[inline]
    pub fn cosine(&self, key: &K, other: &Vector, next: &mut usize) -> Option<f32> {
        let place = if self.keys.get(*next) == Some(key) {
            *next
        } else {
            *self.places.get(key)? as usize
        };
        *next = place + 1;
        let values = self.values.get(place * self.dims..(place + 1) * self.dims)?;
        if values.len() != other.values.len() {
            return None;
        }
        Some(dot(values, &other.values) as f32 * self.scales.get(place)? * other.scale)
    }

    /// The vector of a key.
    pub fn get(&self, key: &K) -> Option<Vector> {
        let place = *self.places.get(key)? as usize;
        Some(Vector {
            scale: *self.scales.get(place)?,
            values: self.values.get(place * self.dims..(place + 1) * self.dims)?.into(),
        })
    }

    /// Bytes in memory, about.
    pub fn size(&self) -> usize {
        self.scales.len() * Self::size_of(self.dims)
    }

    /// Bytes in memory of one vector, about; 0 while there are none.
    pub fn size_of_one(&self) -> usize {
        if self.scales.is_empty() {
            0
        } else {
            Self::size_of(self.dims)
        }
    }

    /// Bytes in memory of one vector with `dims` dimensions, about.
    pub fn size_of(dims: usize) -> usize {
        dims + 4 + size_of::<K>() + 2 * (size_of::<K>() + 4)
    }
}

/// The sum of products. In this form the compiler makes one instruction of eight products and four sums.
#[inline]
fn dot(left: &[i8], right: &[i8]) -> i32 {
    let products = left
        .iter()
        .zip(right)
        .map(|(left, right)| i32::from(*left) * i32::from(*right));
    products.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_keeps_its_direction() {
        let exact: Vec<f32> = (0..384).map(|it| ((it * 7919 % 101) as f32 - 50.0) / 13.0).collect();
        let other: Vec<f32> = (0..384).map(|it| ((it * 104_729 % 97) as f32 - 40.0) / 5.0).collect();
        let length = |it: &[f32]| it.iter().map(|it| it * it).sum::<f32>().sqrt();
        let dot: f32 = exact.iter().zip(&other).map(|(left, right)| left * right).sum();
        let cosine = dot / length(&exact) / length(&other);
        let mut vectors = Vectors::default();
        vectors.insert(1, &Vector::of(&exact).expect("a direction"));
        let other = Vector::of(&other).expect("a direction");
        let found = vectors.cosine(&1, &other, &mut 0).expect("a cosine");
        assert!((found - cosine).abs() < 0.01, "{found} {cosine}");
        vectors.insert(2, &other);
        assert!((vectors.cosine(&2, &other, &mut 0).expect("itself") - 1.0).abs() < 0.01);
        assert_eq!(Vector::read(&other.bytes(), 384), Some(other));
    }

    #[test]
    fn products_are_summed_whatever_the_length() {
        for length in [0_usize, 1, 15, 16, 17, 384] {
            let left: Vec<i8> = (0..length).map(|it| (it % 256) as u8 as i8).collect();
            let right: Vec<i8> = (0..length).map(|it| (it * 7 % 256) as u8 as i8).collect();
            let expected: i32 = left
                .iter()
                .zip(&right)
                .map(|it| i32::from(*it.0) * i32::from(*it.1))
                .sum();
            assert_eq!(dot(&left, &right), expected, "{length}");
        }
        assert_eq!(dot(&[-128; 32], &[-128; 32]), 32 * 16384);
    }

    #[test]
    fn what_has_no_direction_is_no_vector() {
        for exact in [&[][..], &[0.0, 0.0], &[f32::NAN, 1.0], &[f32::INFINITY, 1.0]] {
            assert_eq!(Vector::of(exact), None, "{exact:?}");
        }
        let sound = Vector::of(&[3.0, 4.0]).expect("a direction").bytes();
        for (bytes, dims) in [
            (&sound[..], 3),
            (&sound[..5], 2),
            (&[], 0),
            (&[0, 0, 0, 0, 1, 1], 2),
            (&[0, 0, 0x80, 0x7f, 1, 1], 2),
        ] {
            assert_eq!(Vector::read(bytes, dims), None, "{bytes:?} {dims}");
        }
    }
}
